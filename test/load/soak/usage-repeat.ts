/**
 * The proofs of usage, longer than a test run has time for: `bun test/load/soak/usage-repeat.ts [runs of the model]
 * [repeats from outside]`. One after the other; each repeat of the sweep of kills has a seed, and so instants, of its
 * own. Prints how often each held.
 */
export {}

const [modelRuns = '5000', repeats = '20'] = process.argv.slice(2)

const behaviour = (name: string): string => `test/behaviour/${name}.test.ts`

const rows: { args: readonly string[]; environment: Readonly<Record<string, string>> }[] = [
  { args: ['src/usage/lease/protocol.test.ts'], environment: { USAGE_MODEL_RUNS: modelRuns } },
  ...['usage', 'money', 'limits', 'lost-disks'].map((name) => ({
    args: ['--rerun-each', repeats, behaviour(name)],
    environment: { USAGE_CROWD: '500' },
  })),
  ...Array.from({ length: Number(repeats) }, (_, index) => ({
    args: [behaviour('usage-kills')],
    environment: { USAGE_KILLS: '5', USAGE_KILL_SEED: String(index + 1) },
  })),
]

const held = new Map<string, { passed: number; failed: number }>()

for (const { args, environment } of rows) {
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
