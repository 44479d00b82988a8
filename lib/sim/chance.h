/* Random bytes and ports, which the kernel draws by chance, by the seed of the run. */
#pragma once

/* Gives an unbound socket of the internet a port, as the kernel would when it connects. */
void chance_bind(int descriptor);
