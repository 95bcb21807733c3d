/**
 * To be imported before anything else. The schema library of the contract compiles its checks with `new Function` unless
 * it is told not to, and finds out whether it may by trying: under this page's Content-Security-Policy the attempt alone
 * is a violation. It reads this object when it is loaded.
 */
Object.assign(globalThis, { __zod_globalConfig: { jitless: true } });
