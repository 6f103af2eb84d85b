import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SecretReader } from './secret-reference.ts'

const folder = mkdtempSync(join(tmpdir(), 'secrets-'))
const asked: [string, string | null, string | null][] = []
const vault = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const { pathname } = new URL(request.url)
    asked.push([pathname, request.headers.get('x-vault-token'), request.headers.get('x-vault-namespace')])
    if (pathname === '/v1/secret/data/openai') {
      return Response.json({ data: { data: { api_key: 'of version 2' }, metadata: { version: 3 } } })
    }
    if (pathname === '/v1/kv/openai') return Response.json({ data: { api_key: 'of version 1', data: 'a field' } })
    return Response.json({ errors: [] }, { status: pathname === '/v1/secret/data/denied' ? 403 : 404 })
  },
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await vault.stop(true)
})

const environment = {
  PATH: process.env.PATH,
  NAME: 'of the variable',
  VAULT_ADDR: `${vault.url.origin}/`,
  VAULT_TOKEN: 'hvs.token',
  VAULT_NAMESPACE: 'team',
}
const source = join(folder, 'file.yaml')
const reader = () => new SecretReader({ environment })
const failureOf = (reading: Promise<string>): Promise<string> => reading.then(String, (error: Error) => error.message)

test('reads a variable, a file beside the one that says it, and what a command writes', async () => {
  writeFileSync(join(folder, 'key'), 'of the file\n')
  expect(await reader().read({ env: 'NAME' }, source)).toBe('of the variable')
  expect(await reader().read({ file: 'key' }, source)).toBe('of the file')
  const command = ['sh', '-c', 'printf "%s of the command\\n" "$0"', 'text']
  expect(await reader().read({ command }, source)).toBe('text of the command')
})

test('reads a field of Vault, from both versions of its engine, and each secret once', async () => {
  const secrets = reader()
  expect(await secrets.read('vault://secret/data/openai#api_key', source)).toBe('of version 2')
  expect(await secrets.read('vault://secret/data/openai#api_key', source)).toBe('of version 2')
  expect(await secrets.read('vault://kv/openai#api_key', source)).toBe('of version 1')
  expect(asked).toEqual([
    ['/v1/secret/data/openai', 'hvs.token', 'team'],
    ['/v1/kv/openai', 'hvs.token', 'team'],
  ])
})

test('says of a secret that cannot be read where it was looked for, and never what was found', async () => {
  expect(await failureOf(reader().read('vault://secret/data/denied#a', source))).toContain(
    'Vault answers with status 403',
  )
  expect(await failureOf(reader().read('vault://kv/openai#other', source))).toContain('no text of this field')
  const silent = new SecretReader({ environment: { ...environment, VAULT_ADDR: 'http://127.0.0.1:1' } })
  expect(await failureOf(silent.read('vault://kv/openai#api_key', source))).toContain('cannot be reached')
  expect(await failureOf(reader().read({ command: ['sh', '-c', 'echo hush; exit 3'] }, source))).not.toContain('hush\n')
  writeFileSync(join(folder, 'empty'), '\n')
  expect(await failureOf(reader().read({ file: 'empty' }, source))).toContain('it is empty')
})
