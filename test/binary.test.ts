/**
 * The executable by itself: in an empty directory, with nowhere to unpack anything, among files that would configure a
 * program of its kind. What it needs beyond itself it would be missing here.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventPage, tokenPage } from './support/answers.ts'
import { api, chat, createToken } from './support/client.ts'
import { executable } from './support/executable.ts'
import { type Gatehouse, run, startGatehouse, temporaryDirectory } from './support/harness.ts'
import { mappedFiles } from './support/processes.ts'
import { eventsOfRequest } from './support/recorded.ts'

setDefaultTimeout(120_000)

/** Cannot be written to by anyone, root included. */
const nowhere = '/proc/no-such-directory'
const directory = temporaryDirectory()
const alone = join(directory, 'alone')
const executablePath = join(alone, 'gatehouse')
let gatehouse: Gatehouse

beforeAll(async () => {
  mkdirSync(alone)
  copyFileSync(await executable(), executablePath)
  gatehouse = await startGatehouse({
    executablePath,
    workingDirectory: alone,
    dataDirectory: join(directory, 'data'),
    env: { TMPDIR: nowhere, BUN_TMPDIR: nowhere, HOME: nowhere },
  })
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  rmSync(directory, { recursive: true, force: true })
})

const operateAlone = (...args: string[]) =>
  run(args, {
    executablePath,
    workingDirectory: alone,
    env: {
      TMPDIR: nowhere,
      BUN_TMPDIR: nowhere,
      SERVICE_API_URL: gatehouse.baseUrl,
      SERVICE_API_TOKEN: gatehouse.adminToken,
    },
  })

test('starts, migrates and serves from the executable alone with nowhere to unpack', async () => {
  const requestId = 'alone'
  const answer = await chat(gatehouse, { token: gatehouse.adminToken, model: 'simulator/echo', requestId })
  expect(answer.status).toBe(200)
  await answer.text()
  expect((await eventsOfRequest(gatehouse, requestId)).length).toBe(2)
  const mebibytes = (statSync(executablePath).size / 1024 / 1024).toFixed(1)
  console.info(`gatehouse is ${mebibytes} MiB and was ready after ${gatehouse.startUpMs.toFixed(0)} ms`)
})

test('leaves no file beside the executable', () => {
  expect(readdirSync(alone)).toEqual(['gatehouse'])
})

test('runs the operator commands from the executable alone', async () => {
  const listed = await operateAlone('token', 'list', '--json')
  expect([listed.code, listed.stderr]).toEqual([0, ''])
  expect(tokenPage.parse(JSON.parse(listed.stdout)).tokens.length).toBe(2)
  const tailed = await operateAlone('events', 'tail', '--since', '1h', '--json')
  expect([tailed.code, tailed.stderr]).toEqual([0, ''])
  expect(eventPage.parse(JSON.parse(tailed.stdout)).events.length).toBeGreaterThan(0)
  expect((await operateAlone('version')).stdout).toContain('0.2.0')
})

test('loads the libSQL addon in the control plane and never in the gateway', async () => {
  // The gateway has decided, read its state and shipped events: whatever it loads lazily is loaded by now.
  const token = await createToken(gatehouse)
  await (await chat(gatehouse, { token: token.token_value, model: 'simulator/echo' })).text()
  await api(gatehouse, `/v1/tokens/${token.id}`, { method: 'DELETE' })
  const addons = (pid: number) => mappedFiles(pid).filter((file) => file.includes('libsql') || file.endsWith('.node'))
  expect(addons(gatehouse.controlPlanePid()).length).toBe(1)
  expect(addons(gatehouse.gatewayPid())).toEqual([])
})

test('ignores a stray .env and bunfig.toml in the working directory', async () => {
  const littered = join(directory, 'littered')
  mkdirSync(littered)
  writeFileSync(join(littered, '.env'), 'SERVICE_LOG_LEVEL=nonsense\nSERVICE_DATA=/proc/x\nOPENAI_API_KEY=sk-stray\n')
  writeFileSync(join(littered, 'bunfig.toml'), 'preload = ["./preloaded.ts"]\n')
  writeFileSync(join(littered, 'preloaded.ts'), 'throw new Error("preloaded")\n')
  writeFileSync(join(littered, 'package.json'), '{"type":"commonjs","main":"preloaded.ts"}')
  await using started = await startGatehouse({ executablePath, workingDirectory: littered })
  const token = started.adminToken
  expect((await chat(started, { token, model: 'simulator/echo' })).status).toBe(200)
  // With the stray key there would be a provider that takes any model.
  expect((await chat(started, { token, model: 'fake-model' })).status).toBe(404)
  const explained = await run(['config', 'explain'], { executablePath, workingDirectory: littered })
  expect(explained.code).toBe(0)
  expect(explained.stdout).not.toContain('nonsense')
})
