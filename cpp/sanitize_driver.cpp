// Runs the kernels on the inputs in a folder, under AddressSanitizer and UBSan: `make sanitize`.
// Nothing is run yet.

int main() { return 0; }
