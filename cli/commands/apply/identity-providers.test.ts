import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { newProviderBody } from '../../../src/members/identity-providers/identity-provider-resource.ts'
import { runCommandLine } from '../../command/command.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { applyCommand } from './apply.ts'

const known = newProviderBody.parse({ name: 'Acme', issuer: 'https://id.acme.test', client_id: 'gatehouse' })
const there = { ...known, id: 'id-acme', version: 2, has_client_secret: true, redirect_uri: 'x', created_at: 'x' }
const control = recordingControlPlane(({ method }) =>
  method === 'GET' ? { identity_providers: [there], teams: [], next_cursor: null } : there,
)
const folder = mkdtempSync(join(tmpdir(), 'apply-providers-'))
afterEach(() => control.requests.splice(0))
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await control.stop()
})

async function apply(entry: object, ...flags: string[]) {
  const path = join(folder, 'file.json')
  writeFileSync(path, JSON.stringify({ identity_providers: [entry] }))
  const terminal = recordingTerminal({ environment: { ...control.environment, SECRET: 'hush hush' } })
  await runCommandLine(applyCommand(terminal), ['-f', path, ...flags], terminal)
  return terminal.written()
}
const sentSchema = z.object({ calls: z.array(z.looseObject({ body: z.unknown() })) })
const sent = () =>
  control.requests
    .filter(({ method }) => method !== 'GET')
    .flatMap(({ body }) => sentSchema.parse(body).calls.map((call) => call.body))

const acme = { name: 'Acme', issuer: 'https://id.acme.test', client_id: 'gatehouse', client_secret: { env: 'SECRET' } }

test('a provider that is as the file says is left alone', async () => {
  expect(await apply(acme)).toBe('= identity provider Acme\n')
  expect(sent()).toEqual([])
})

test('a new provider is made with its secret from a variable, and shows no secret', async () => {
  const other = { ...acme, name: 'Other', issuer: 'https://id.other.test' }
  expect(await apply(other)).toBe('+ identity provider Other\n')
  const { client_secret: _, ...plain } = other
  expect(sent()).toEqual([{ ...newProviderBody.parse(plain), client_secret: 'hush hush' }])
})

test('only what differs is sent; the secret with --secrets, and away where the file names none', async () => {
  const shown = await apply({ ...acme, domains: ['Acme.test'] })
  expect(shown).toBe('~ identity provider Acme\n    domains: [] -> ["acme.test"]\n')
  expect(await apply(acme, '--secrets')).toBe('~ identity provider Acme\n')
  const { client_secret: _, ...open } = acme
  await apply(open)
  expect(sent()).toEqual([{ domains: ['acme.test'] }, { client_secret: 'hush hush' }, { client_secret: null }])
})

test('another issuer, a fault and an unknown field change nothing', async () => {
  await expect(apply({ ...acme, issuer: 'https://id.else.test' })).rejects.toThrow('delete it first')
  await expect(apply({ ...acme, issuer: 'http://id.acme.test' })).rejects.toThrow('https://')
  await expect(apply({ ...acme, client_secret: 'in the file' })).rejects.toThrow('client_secret')
  expect(sent()).toEqual([])
})
