import { expect, test } from 'bun:test'
import { until } from '../../test/support/eventually.ts'
import { Failure } from '../failure.ts'
import { openRemoteDatabase, remoteAddress } from './remote.ts'

/** Stands where a libSQL server would, and answers as told. */
async function withServer(
  answer: (request: Request, count: number) => Response | Promise<Response>,
  use: (url: string) => Promise<void>,
): Promise<number> {
  let count = 0
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      // The client asks for the protocol's version first.
      if (request.method === 'GET') return new Response(null, { status: 404 })
      count += 1
      return answer(request, count)
    },
  })
  try {
    await use(`http://127.0.0.1:${server.port}`)
  } finally {
    await server.stop(true)
  }
  return count
}

const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
  const error: unknown = await work.catch((thrown: unknown) => thrown)
  if (error instanceof Failure) return error
  throw new Error(`Not a Failure: ${String(error)}`)
}

test('retries a failed read but not a write, whose effect is unknown', async () => {
  const reads = await withServer(
    () => new Response(null, { status: 502 }),
    async (url) => {
      const database = await openRemoteDatabase({ url, token: 'secret', name: 'state' })
      expect((await failureOf(database.read('select 1'))).code).toBe('dependency_unavailable')
    },
  )
  const writes = await withServer(
    () => new Response(null, { status: 502 }),
    async (url) => {
      const database = await openRemoteDatabase({ url, token: 'secret', name: 'state' })
      const failure = await failureOf(database.write([{ sql: 'delete from a', args: [] }]))
      expect(failure).toMatchObject({ code: 'dependency_unavailable', status: 503 })
      expect(Bun.inspect(failure)).not.toContain('secret')
    },
  )
  expect({ reads: reads > 1, writes }).toEqual({ reads: true, writes: 1 })
})

test('of many writes at once one is on its way, and reads do not wait for them', async () => {
  const arrived = { writes: 0, reads: 0 }
  const held = Promise.withResolvers<void>()
  await withServer(
    async (request) => {
      const isRead = (await request.text()).includes('select 1')
      arrived[isRead ? 'reads' : 'writes'] += 1
      if (!isRead) await held.promise
      return new Response(null, { status: 500 })
    },
    async (url) => {
      const database = await openRemoteDatabase({ url, token: 'secret', name: 'state' })
      const writes = Array.from({ length: 20 }, () => failureOf(database.write([{ sql: 'delete from a', args: [] }])))
      await failureOf(database.read('select 1'))
      expect(arrived.reads).toBeGreaterThan(0)
      expect(arrived.writes).toBe(1)
      held.resolve()
      await Promise.all(writes)
    },
  )
  expect(arrived.writes).toBe(20)
})

test('does not send cancelled reads', async () => {
  let arrived = 0
  const held = Promise.withResolvers<void>()
  await withServer(
    async () => {
      arrived += 1
      await held.promise
      return new Response(null, { status: 500 })
    },
    async (url) => {
      const database = await openRemoteDatabase({ url, token: 'secret', name: 'ledger', callMilliseconds: 100 })
      await Promise.all(Array.from({ length: 200 }, () => failureOf(database.read('select 1'))))
      held.resolve()
      await failureOf(database.read('select 1'))
    },
  )
  expect(arrived).toBeLessThan(60)
})

test('a write that is patient lets others go first', async () => {
  const arrived: string[] = []
  const held = Promise.withResolvers<void>()
  await withServer(
    async (request) => {
      arrived.push(/delete from (\w+)/.exec(await request.text())?.[1] ?? '')
      await held.promise
      return new Response(null, { status: 500 })
    },
    async (url) => {
      const database = await openRemoteDatabase({ url, token: 'secret', name: 'ledger' })
      const patient = { held: () => undefined }
      const write = (table: string, patience?: typeof patient) =>
        failureOf(database.write([{ sql: `delete from ${table}`, args: [] }], patience))
      const writes = [write('first'), write('patient_one', patient), write('other')]
      held.resolve()
      await Promise.all(writes)
    },
  )
  expect(arrived).toEqual(['first', 'other', 'patient_one'])
})

test('behind a write that was given up the next waits until the server has ended it', async () => {
  let arrived = 0
  const held = Promise.withResolvers<void>()
  await withServer(
    async () => {
      arrived += 1
      if (arrived === 1) await held.promise
      return new Response(null, { status: 500 })
    },
    async (url) => {
      const database = await openRemoteDatabase({ url, token: 'secret', name: 'ledger', callMilliseconds: 50 })
      const write = () => failureOf(database.write([{ sql: 'delete from a', args: [] }]))
      expect((await write()).code).toBe('dependency_unavailable')
      expect((await write()).code).toBe('dependency_unavailable')
      expect(arrived).toBe(1)
      held.resolve()
      await until('the next is sent', async () => {
        await write()
        return arrived > 1
      })
    },
  )
})

test('a server that is not there is unavailable, for reads and writes', async () => {
  const database = await openRemoteDatabase({ url: 'http://127.0.0.1:1', token: undefined, name: 'ledger' })
  expect((await failureOf(database.read('select 1'))).message).toContain('ledger')
  expect((await failureOf(database.write([{ sql: 'delete from a', args: [] }]))).code).toBe('dependency_unavailable')
})

test('addresses in the clear are for this host only', () => {
  const here = ['http://127.0.0.1:8080', 'http://localhost', 'http://state.localhost:8080', 'http://[::1]:1']
  expect(here.map((url) => remoteAddress(url, 'state'))).toEqual(here)
  expect(remoteAddress('libsql://state-org.example.com', 'state')).toBe('https://state-org.example.com')
  for (const url of ['http://db.example.com', 'http://10.0.0.1:8080', 'http://localhost.example.com']) {
    expect(() => remoteAddress(url, 'state')).toThrow('https://')
  }
})
