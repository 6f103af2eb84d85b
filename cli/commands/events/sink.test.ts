import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SinkFixture } from '../../../src/sinks/testing/sink-fixture.ts'
import { main } from '../../main.ts'
import { recordingTerminal } from '../../testing/terminal.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const each of undo.splice(0)) await each()
})

const id = '01900000-0000-7000-8000-000000000001'

/** A control plane that keeps what it is asked and gives this answer. */
function terminal(answer: unknown, environment: Record<string, string> = {}) {
  const asked: { method: string; path: string; body: unknown }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text()
      asked.push({
        method: request.method,
        path: new URL(request.url).pathname,
        body: text === '' ? null : JSON.parse(text),
      })
      return Response.json(answer)
    },
  })
  undo.push(() => server.stop(true))
  const screen = recordingTerminal({
    environment: { SERVICE_API_URL: `http://127.0.0.1:${server.port}`, HOME: '/nonexistent', ...environment },
  })
  return { screen, asked }
}

test('creates a sink, with its credentials from the environment', async () => {
  const { screen, asked } = terminal({ id, name: 'archive' }, { KEY_ID: 'AKIA', KEY: 'secret' })
  const flags = ['--name', 'archive', '--kind', 's3', '--url', 'https://s3.example.com', '--s3-bucket', 'audit']
  const more = ['--s3-lock-days', '30', '--start', 'beginning', '--access-key-id-env', 'KEY_ID']
  expect(await main(['sink', 'create', ...flags, ...more, '--secret-access-key-env', 'KEY'], screen)).toBe(0)
  expect(asked[0]).toEqual({
    ...{ method: 'POST', path: '/v1/sinks' },
    body: {
      ...{ name: 'archive', kind: 's3', url: 'https://s3.example.com', start: 'beginning' },
      s3: { bucket: 'audit', lock_days: 30 },
      credentials: { access_key_id: 'AKIA', secret_access_key: 'secret' },
    },
  })
})

test('says whether the receiver took the test event', async () => {
  const taken = terminal({ ok: true, event_id: 'e-1', error: null })
  expect(await main(['sink', 'test', id], taken.screen)).toBe(0)
  expect(taken.asked[0]).toMatchObject({ method: 'POST', path: `/v1/sinks/${id}/test` })
  expect(taken.screen.written()).toContain('e-1')
  const refused = terminal({ ok: false, event_id: 'e-2', error: 'The receiver answered 403' })
  expect(await main(['sink', 'test', id], refused.screen)).toBe(1)
  expect(refused.screen.noted()).toContain('The receiver answered 403')
})

test('proves lines in a file without a control plane, and names what was altered in them', async () => {
  const sinks = await SinkFixture.start()
  undo.push(() => sinks.remove())
  await sinks.proof.shipEvents(1, 20)
  await sinks.proof.sign()
  await sinks.add({ kind: 'http' })
  await sinks.deliver()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sink-'))
  undo.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'lines.ndjson')
  const verify = async (text: string, ...flags: string[]) => {
    writeFileSync(file, text)
    const screen = recordingTerminal({ environment: { HOME: '/nonexistent' } })
    return { code: await main(['sink', 'verify', '--from', file, ...flags], screen), text: screen.written() }
  }
  const text = `${sinks.lines.join('\n')}\n`
  expect(await verify(text, '--key', sinks.proof.key.id)).toEqual({
    ...{ code: 0, text: '20 events in 20 records of 1 chains, 0 findings\n' },
  })
  const altered = await verify(text.replace('"verdict":"allow"', '"verdict":"block"'))
  expect(altered.code).toBe(1)
  expect(altered.text).toContain(`${sinks.proof.worker(1)} 1–20: `)
  expect((await verify('')).code).toBe(1)
})

test('says which records have only a digest, and which chains begin late', async () => {
  const sinks = await SinkFixture.start()
  undo.push(() => sinks.remove())
  await sinks.proof.shipEvents(1, 20)
  await sinks.add({ kind: 'http', filter: 'event.event_type == "auth.token_refused"' })
  await sinks.deliver()
  await sinks.proof.shipEvents(1, 5)
  await sinks.proof.sign()
  await sinks.deliver()
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sink-'))
  undo.push(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'lines.ndjson')
  const noted = async (lines: readonly string[]) => {
    writeFileSync(file, `${lines.join('\n')}\n`)
    const screen = recordingTerminal({ environment: { HOME: '/nonexistent' } })
    await main(['sink', 'verify', '--from', file], screen)
    return screen.noted()
  }
  expect(await noted(sinks.lines)).toContain('25 records have only a digest here')
  const proofs = sinks.lines.flatMap((line, index) => (line.includes('"left_out"') ? index : []))
  const later = await noted(sinks.lines.slice((proofs[0] ?? 0) + 1))
  expect(later).toContain(`Chains begin late (${sinks.proof.worker(1)} with 21)`)
})

test('asks for either a sink or files', async () => {
  const screen = recordingTerminal({ environment: { HOME: '/nonexistent' } })
  expect(await main(['sink', 'verify'], screen)).toBe(2)
  expect(await main(['sink', 'verify', id, '--from', '/tmp'], screen)).toBe(2)
  expect(await main(['sink', 'verify', '--from', '/nonexistent/archive'], screen)).toBe(2)
})
