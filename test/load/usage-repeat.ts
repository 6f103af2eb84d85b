/**
 * The proofs of usage, longer than a test run has time for: `bun test/load/usage-repeat.ts [runs of the model] [repeats
 * from outside]`. Prints how often each held.
 */
export {}

const [modelRuns = '5000', repeats = '20'] = process.argv.slice(2)

const outside = ['usage', 'money', 'limits', 'lost-disks'].map((name) => `test/behaviour/${name}.test.ts`)
const held = new Map<string, { passed: number; failed: number }>()

for (const { args, environment } of [
  { args: ['src/usage/protocol.test.ts'], environment: { USAGE_MODEL_RUNS: modelRuns } },
  { args: ['--rerun-each', repeats, ...outside], environment: {} },
]) {
  const child = Bun.spawn([process.execPath, 'test', ...args], {
    env: { ...process.env, ...environment },
    stdout: 'inherit',
    stderr: 'pipe',
  })
  const said = await new Response(child.stderr).text()
  for (const [, result, name = ''] of said.matchAll(/^\((pass|fail)\) (.*?)(?: \[[\d.]+ms\])?$/gm)) {
    const counts = held.get(name) ?? { passed: 0, failed: 0 }
    held.set(name, counts)
    if (result === 'pass') counts.passed++
    else counts.failed++
  }
  if ((await child.exited) !== 0) {
    process.stderr.write(said)
    process.exitCode = 1
  }
}

for (const [name, { passed, failed }] of held) console.log(`${passed}/${passed + failed}  ${name}`)
