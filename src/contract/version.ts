/**
 * The version of everything in this folder. Client and engine exchange it first and part with a clear error if it
 * differs; it goes up with every change that an older peer would misread.
 */
export const contractVersion = 2;
