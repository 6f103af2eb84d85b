/** The trusted authorities are read when a process starts, so the calls are made in a process of their own. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { authority, certificate, key } from '../testing/certificate.ts'
import { poolOf } from './connection-pools.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-pools-'))
const authorityFile = join(directory, 'authority.pem')
let connections = 0
let requests = 0
const server = createServer({ key, cert: certificate }, (request, response) => {
  requests += 1
  request.resume()
  request.on('end', () => setTimeout(() => response.end('{}'), 100))
})
server.keepAliveTimeout = 60_000
server.on('secureConnection', () => {
  connections += 1
})
beforeAll(async () => {
  await Bun.write(authorityFile, authority)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  rmSync(directory, { recursive: true })
})

/** Makes these many calls at once, several times. Gives the codes of those that fail. */
async function call(host: string, atOnce: number, rounds: number, environment: Record<string, string>) {
  const address = server.address()
  const url = `https://${host}:${typeof address === 'object' ? address?.port : ''}/v1`
  const program = `
    import { poolOf } from ${JSON.stringify(join(import.meta.dir, 'connection-pools.ts'))}
    const url = ${JSON.stringify(url)}
    const one = (slot) =>
      fetch(url, { method: 'POST', body: 'x', tls: poolOf(url, slot) }).then((answer) => answer.text())
    const codes = new Set()
    for (let round = 0; round < ${rounds}; round++) {
      const calls = Array.from({ length: ${atOnce} }, (_, slot) => one(slot).catch((error) => codes.add(error.code)))
      await Promise.all(calls)
    }
    console.log(JSON.stringify([...codes]))
    process.exit()`
  const child = Bun.spawn([process.execPath, '-e', program], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '65000', ...environment },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return await new Response(child.stdout).json()
}

test('200 concurrent calls over TLS make 200 connections, and keep them', async () => {
  connections = requests = 0
  expect(await call('localhost', 200, 4, { NODE_EXTRA_CA_CERTS: authorityFile })).toEqual([])
  expect([requests, connections]).toEqual([800, 200])
})

test('a call in any pool refuses an unknown authority and a certificate of another host', async () => {
  requests = 0
  expect(await call('localhost', 200, 1, {})).toEqual(['UNABLE_TO_VERIFY_LEAF_SIGNATURE'])
  const trusting = { NODE_EXTRA_CA_CERTS: authorityFile }
  expect(await call('127.0.0.1', 200, 1, trusting)).toEqual(['ERR_TLS_CERT_ALTNAME_INVALID'])
  expect(requests).toBe(0)
})

test('poolOf() gives the first calls, and calls without TLS, the pool that fetch has by itself', () => {
  expect(poolOf('https://host/v1', 59)).toBeUndefined()
  expect(poolOf('http://host/v1', 1000)).toBeUndefined()
  expect(poolOf('https://host/v1', 60)).toEqual(poolOf('https://host/v1', 119))
  expect(poolOf('https://host/v1', 60)).not.toEqual(poolOf('https://host/v1', 120))
  expect(poolOf('https://host/v1', 1_000_000)).toEqual(poolOf('https://host/v1', 32 * 60))
})
