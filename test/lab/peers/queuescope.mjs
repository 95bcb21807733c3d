// The command line as `npx queuescope` runs it, but never built anew: the guest has a copy of the host's build.
const { main } = await import('../../../dist/node/queuescope.js');
process.exitCode = await main(process.argv.slice(2));
