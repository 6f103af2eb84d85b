import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { api, expectAnswer } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { cleanEnvironment, collect, run, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(120_000)

const readyLine = z.object({
  base_url: z.string(),
  console_url: z.string(),
  gateway_url: z.string(),
  email: z.string(),
  password: z.string(),
  admin_token: z.string(),
  data: z.string(),
})

/** The demonstration, started where the environment names a real installation and a provider's key. */
async function startDemo(flags: readonly string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([await executable(), 'demo', '--json', ...flags], {
    env: cleanEnvironment(environment),
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const ready = await eventually(
    () => {
      const line = stdout().split('\n')[0]
      if (!line) throw new Error(`The demonstration is not ready (exit code ${child.exitCode}): ${stderr()}`)
      return readyLine.parse(JSON.parse(line))
    },
    { withinMs: 60_000 },
  )
  const end = async () => {
    child.kill('SIGINT')
    return await child.exited
  }
  // A test that fails ends it all the same.
  return { ready, stderr, end, [Symbol.asyncDispose]: async () => void (await end()) }
}

const totals = z.looseObject({
  totals: z.array(z.looseObject({ key: z.string().nullable(), requests: z.number(), cost: z.number() })),
})

test('shows every verdict, touches nothing of a real installation, and ends without a trace', async () => {
  const real = join(temporaryDirectory(), 'real')
  mkdirSync(real)
  await using started = await startDemo(['--requests', '400', '--rate', '20'], {
    SERVICE_DATA: real,
    SERVICE_API_TOKEN: `gth_${'0'.repeat(36)}`,
    OPENAI_API_KEY: 'sk-a-real-key',
    GROQ_API_KEY: 'gsk-a-real-key',
  })
  const { ready, stderr } = started
  const installed = { baseUrl: ready.base_url, adminToken: ready.admin_token }
  const { email, password } = ready
  expect((await api(installed, '/v1/auth/login', { token: null, body: { email, password } })).status).toBe(200)
  const named = z.looseObject({
    providers: z.array(z.looseObject({ name: z.string(), base_url: z.string().nullable() })),
  })
  const { providers } = expectAnswer(await api(installed, '/v1/catalog/providers'), 200, named)
  expect(providers.map(({ name }) => name).toSorted()).toEqual(['anthropic', 'openai', 'simulator'])
  for (const { base_url } of providers) expect(base_url ?? 'http://127.0.0.1:').toStartWith('http://127.0.0.1:')
  await eventually(
    async () => {
      const read = expectAnswer(await api(installed, '/v1/events/series?since=15m&by=verdict'), 200, totals)
      const verdicts = read.totals.map(({ key }) => key)
      for (const wanted of ['allow', 'redact', 'block', 'deny', 'rate_limit', 'escalate', 'error']) {
        expect(verdicts).toContain(wanted)
      }
      expect(read.totals.reduce((sum, { cost }) => sum + cost, 0)).toBeGreaterThan(0)
    },
    { withinMs: 60_000 },
  )
  await eventually(
    async () => {
      const read = expectAnswer(
        await api(installed, '/v1/events/series?since=15m&by=reason&verdict=block'),
        200,
        totals,
      )
      const reasons = read.totals.map(({ key }) => key)
      expect(reasons.toSorted()).toEqual(['policy.secrets', 'policy.term_filter'])
    },
    { withinMs: 60_000 },
  )
  const budgets = z.looseObject({
    budgets: z.array(z.looseObject({ current_spend: z.number(), max_budget: z.number() })),
  })
  await eventually(
    async () => {
      const limits = expectAnswer(await api(installed, '/v1/budgets'), 200, budgets).budgets
      expect(limits.some((budget) => budget.current_spend >= 0.95 * budget.max_budget)).toBe(true)
    },
    { withinMs: 60_000 },
  )
  expect(stderr()).toBe('')
  expect(await started.end()).toBe(0)
  expect(existsSync(ready.data)).toBe(false)
  expect(readdirSync(real)).toEqual([])
})

test('refuses a directory that holds something', async () => {
  const data = temporaryDirectory()
  writeFileSync(join(data, 'master.key'), 'something')
  const { code, stderr } = await run(['demo', '--data', data])
  expect([code, stderr]).toEqual([2, expect.stringContaining('is not empty')])
  expect(readdirSync(data)).toEqual(['master.key'])
})

test('keeps a directory that was named', async () => {
  const data = join(temporaryDirectory(), 'kept')
  await using started = await startDemo(['--data', data, '--requests', '160'])
  expect(await started.end()).toBe(0)
  expect(readdirSync(data)).toContain('state.db')
})
