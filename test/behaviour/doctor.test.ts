/** `doctor` as an operator and on a gateway's host: nothing wrong, and what it says when something is. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { createToken, installation, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, providerKey, type Ran, run, startGatehouse } from '../support/harness.ts'
import { type MoreGateway, startMoreGateway } from '../support/more-gateways.ts'
import { environmentOf, isAlive, signal } from '../support/processes.ts'

const reportSchema = z.object({
  ok: z.boolean(),
  findings: z.array(
    z.object({
      check: z.string(),
      level: z.enum(['ok', 'warn', 'fail']),
      what: z.string(),
      todo: z.string().optional(),
    }),
  ),
})

let gatehouse: Gatehouse
let edge: MoreGateway
let runtimeToken: string

beforeAll(async () => {
  gatehouse = await startGatehouse({ upstream: { baseUrl: 'http://127.0.0.1:1' } })
  edge = await startMoreGateway(gatehouse, 'edge')
  runtimeToken = environmentOf(edge.pid(), 'SERVICE_API_TOKEN') ?? ''
})
afterAll(async () => {
  await edge[Symbol.asyncDispose]()
  await gatehouse.stop()
})

const lookAtEdge = (token: string, ...flags: string[]): Promise<Ran> =>
  run(['doctor', '--data', edge.directory, '--gateway-listen', new URL(edge.url).host, ...flags], {
    env: { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: token },
  })

/** The findings that are not ok, as `level what`. */
async function troubles(ran: Promise<Ran>): Promise<string[]> {
  const { code, stdout } = await ran
  const { ok, findings } = reportSchema.parse(JSON.parse(stdout))
  expect(code).toBe(ok ? 0 : 1)
  expect(ok).toBe(findings.every(({ level }) => level !== 'fail'))
  return findings.filter(({ level }) => level !== 'ok').map(({ level, what }) => `${level} ${what}`)
}

test('a healthy installation gets ok for every check and exit code 0', async () => {
  const { code, stdout, stderr } = await operate(gatehouse, 'doctor')
  expect([code, stderr]).toEqual([0, ''])
  const lines = stdout.trimEnd().split('\n')
  expect(lines.filter((line) => !/^ok {4}\S/.test(line))).toEqual([])
  expect(stdout).toContain('Gateways are connected by 2 workers')
})

test('the host of gatehouse up gets ok for every check, for any user', async () => {
  const listens = ['--gateway-listen', new URL(gatehouse.gatewayUrl).host]
  const ran = run(['doctor', '--data', gatehouse.dataDirectory, ...listens, '--json'], {
    env: { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: gatehouse.adminToken },
  })
  expect(await troubles(ran)).toEqual([])
})

test('the host of a gateway gets ok for every check and shows no secret', async () => {
  const { code, stdout, stderr } = await lookAtEdge(runtimeToken)
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout.split('\n').filter((line) => line !== '' && !line.startsWith('ok '))).toEqual([])
  expect(stdout).toContain("The control plane takes the token as a gateway's own")
  expect(stdout).toContain('can be opened with SERVICE_API_TOKEN')
  for (const secret of [runtimeToken, gatehouse.adminToken, providerKey]) expect(stdout).not.toContain(secret)
})

test('a wrong token is reported with the control plane’s reason', async () => {
  expect(
    await troubles(lookAtEdge(`${runtimeToken.slice(0, -1)}${runtimeToken.endsWith('x') ? 'y' : 'x'}`, '--json')),
  ).toEqual([
    expect.stringContaining('warn The stored bootstrap cannot be opened with SERVICE_API_TOKEN'),
    'fail The control plane refuses the token: 401 invalid_api_token',
  ])
  expect(await troubles(lookAtEdge(gatehouse.adminToken, '--json'))).toContain(
    "fail The token is good, but none of a gateway's: it has no permission runtime:connect",
  )
  const asOperator = run(['doctor', '--json'], {
    env: { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: runtimeToken },
  })
  expect(await troubles(asOperator)).toEqual(["fail The token is a gateway's own"])
})

test('a revoked runtime token is reported with the provider keys to rotate', async () => {
  const { gatewayId: gateway_id, teamId: team_id } = await installation(gatehouse)
  const { id } = await createToken(gatehouse, { purpose: 'gateway_runtime', bindings: { gateway_id, team_id } })
  await revoke(gatehouse, id)
  const [found, ...others] = await troubles(operate(gatehouse, 'doctor', '--json'))
  expect(others).toEqual([])
  expect(found).toContain(`(${id}) was revoked at`)
  expect(found).toMatch(/had the keys of (openai, anthropic|anthropic, openai)$/)
})

test('a hanging control plane is reported quickly', async () => {
  const pid = gatehouse.controlPlanePid()
  signal(pid, 'SIGSTOP')
  try {
    const began = performance.now()
    const found = await troubles(lookAtEdge(runtimeToken, '--json'))
    expect(performance.now() - began).toBeLessThan(30_000)
    expect(found).toEqual([`fail The control plane at ${gatehouse.baseUrl} cannot be reached: no answer within 3 s`])
  } finally {
    signal(pid, 'SIGCONT')
  }
})

test('a killed control plane is reported to operator and host as a closed port', async () => {
  const pid = gatehouse.controlPlanePid()
  // Otherwise it would be back before anybody looks.
  signal(gatehouse.supervisorPid, 'SIGSTOP')
  try {
    signal(pid, 'SIGKILL')
    await until('it is gone', () => !isAlive(pid))
    const gone = `fail The control plane at ${gatehouse.baseUrl} cannot be reached: nothing listens there`
    expect(await troubles(operate(gatehouse, 'doctor', '--json'))).toEqual([gone])
    expect(await troubles(lookAtEdge(runtimeToken, '--json'))).toEqual([gone])
  } finally {
    signal(gatehouse.supervisorPid, 'SIGCONT')
  }
  await until('it is back', async () => (await fetch(`${gatehouse.baseUrl}/readyz`).catch(() => null))?.ok === true)
})

test('a killed gateway is reported to the operator, and its damaged outbox is found and left unchanged', async () => {
  await edge[Symbol.asyncDispose]()
  await until('the operator is told', async () =>
    (await troubles(operate(gatehouse, 'doctor', '--json'))).some((line) =>
      /^warn Worker \S+ of local is unreachable: it serves by what it knows until /.test(line),
    ),
  )
  const outbox = join(edge.directory, 'gateway/worker/outbox')
  const [instance = ''] = readdirSync(outbox)
  const segment = join(outbox, instance, '0', '00000001.segment')
  const bytes = readFileSync(segment)
  bytes.write('garbage', 1_000_000)
  writeFileSync(segment, bytes)
  writeFileSync(join(edge.directory, 'gateway/replica'), 'garbage')
  const found = await troubles(lookAtEdge(runtimeToken, '--json'))
  expect(found).toContain('fail Nothing runs here')
  expect(found).toContainEqual(expect.stringMatching(/^fail The outbox is damaged in segment 1 at byte \d+/))
  expect(found).toContainEqual(expect.stringContaining('fail gateway/replica cannot be read'))
  expect(readFileSync(segment).equals(bytes)).toBe(true)
})

test('a host without an installation is reported as such', async () => {
  const { code, stdout, stderr } = await run(['doctor', '--data', '/nonexistent/data'])
  expect(code).toBe(1)
  expect(stdout.split('\n')).toEqual([
    expect.stringContaining('fail  The data directory /nonexistent/data cannot be used: there is none  — Set'),
    expect.stringContaining('fail  The address of the control plane is not configured  — Set SERVICE_API_URL'),
    '',
  ])
  expect(stderr).toContain('2 things are wrong')
})
