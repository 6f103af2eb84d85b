/**
 * The proofs of usage, longer than a test run has time for: `bun test/load/usage-repeat.ts [runs of the model] [repeats
 * from outside]`.
 */
export {}

const [modelRuns = '5000', repeats = '20'] = process.argv.slice(2)

for (const { args, environment } of [
  { args: ['src/usage/protocol.test.ts'], environment: { USAGE_MODEL_RUNS: modelRuns } },
  { args: ['--rerun-each', repeats, 'test/behaviour/usage.test.ts', 'test/behaviour/money.test.ts'], environment: {} },
]) {
  const child = Bun.spawn([process.execPath, 'test', ...args], {
    env: { ...process.env, ...environment },
    stdout: 'inherit',
    stderr: 'inherit',
  })
  if ((await child.exited) !== 0) process.exit(1)
}
