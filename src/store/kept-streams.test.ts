import { expect, test } from 'bun:test'
import { createClient } from '@libsql/client/http'
import { startSqld } from '../../test/support/sqld.ts'
import { type ClientFetch, keptStreams } from './kept-streams.ts'

interface Sent {
  baton: string | null
  closes: boolean
}

const answerOf = (baton: string | null, closes: boolean): Response =>
  Response.json({
    baton,
    base_url: null,
    results: [
      {
        type: 'ok',
        response: {
          type: 'execute',
          result: {
            cols: [{ name: 'is', decltype: null }],
            rows: [[{ type: 'text', value: ']}' }]],
            affected_row_count: 0,
            last_insert_rowid: null,
          },
        },
      },
      ...(closes ? [{ type: 'ok', response: { type: 'close' } }] : []),
    ],
  })

/** A client whose reads reach a server that answers as told, and what reached that. */
function clientOf(answer: (sent: Sent, count: number) => Response | Promise<Response>, now = () => 0) {
  const sent: Sent[] = []
  const server: ClientFetch = async (request) => {
    const { baton = null, requests } = (await request.json()) as { baton?: string | null; requests: { type: string }[] }
    const call = { baton, closes: requests.at(-1)?.type === 'close' }
    sent.push(call)
    return await answer(call, sent.length)
  }
  const client = createClient({ url: 'http://127.0.0.1:1', concurrency: 32, fetch: keptStreams(server, now) })
  const read = async () => (await client.execute({ sql: 'select ? as "is"', args: ['x'] })).rows[0]?.is
  return { read, sent }
}

const afresh = { baton: null, closes: false }
const asTheClientDoes = { baton: null, closes: true }

test('reuses the stream of the last read while the server keeps it', async () => {
  let now = 0
  const { read, sent } = clientOf(
    (_, count) => answerOf(`b${count}`, false),
    () => now,
  )
  expect([await read(), await read()]).toEqual([']}', ']}'])
  now = 60_000
  await read()
  expect(sent).toEqual([afresh, { baton: 'b1', closes: false }, afresh])
})

test('a stream that is used all the time is given up after a minute', async () => {
  let now = 0
  const { read, sent } = clientOf(
    (_, count) => answerOf(`b${count}`, false),
    () => now,
  )
  for (; now <= 60_000; now += 4000) await read()
  expect(sent.flatMap(({ baton }, index) => (baton === null ? [index * 4000] : []))).toEqual([0, 60_000])
})

test('sends a read again without a stream that the server has dropped', async () => {
  const { read, sent } = clientOf(({ baton, closes }) =>
    baton === null
      ? answerOf(closes ? null : 'b', closes)
      : new Response('Received an invalid baton', { status: 400, headers: { 'content-type': 'text/plain' } }),
  )
  await read()
  expect(await read()).toBe(']}')
  await read()
  expect(sent).toEqual([afresh, { baton: 'b', closes: false }, asTheClientDoes, afresh])
})

test('returns an error of a call on a new stream without a retry', async () => {
  const { read, sent } = clientOf(() => Response.json({ message: 'No', code: 'AUTH_JWT_INVALID' }, { status: 401 }))
  await expect(read()).rejects.toMatchObject({ code: 'SERVER_ERROR' })
  expect(sent).toEqual([afresh])
})

test("uses a stream for one call at a time, and closes a call's own stream if none was free", async () => {
  const held = Promise.withResolvers<void>()
  const { read, sent } = clientOf(async ({ closes }, count) => {
    await held.promise
    return answerOf(closes ? null : `b${count}`, closes)
  })
  const reads = Array.from({ length: 10 }, () => read())
  held.resolve()
  await Promise.all(reads)
  await Promise.all(Array.from({ length: 4 }, () => read()))
  expect(sent.filter(({ closes }) => closes)).toHaveLength(6)
  const batons = sent.flatMap(({ baton }) => (baton === null ? [] : [baton]))
  expect([batons.length, new Set(batons).size]).toEqual([4, 4])
})

test('a stream whose answer did not come is not used again', async () => {
  const { read, sent } = clientOf((_, count) => {
    if (count === 2) throw new TypeError('The connection was lost')
    return answerOf(`b${count}`, false)
  })
  await read()
  await expect(read()).rejects.toThrow('The connection was lost')
  await read()
  expect(sent).toEqual([afresh, { baton: 'b1', closes: false }, afresh])
})

test('a server that names another address for its streams is asked as the client does', async () => {
  const { read, sent } = clientOf(({ closes }) =>
    closes ? answerOf(null, true) : Response.json({ baton: 'b', base_url: 'https://elsewhere.example', results: [] }),
  )
  expect([await read(), await read()]).toEqual([']}', ']}'])
  expect(sent).toEqual([afresh, asTheClientDoes, asTheClientDoes])
})

test('reads from sqld see later writes, errors and a replacement server', async () => {
  await using primary = await startSqld()
  let calls = 0
  const send = keptStreams(
    (request) => {
      calls += 1
      return fetch(request)
    },
    () => performance.now(),
  )
  const options = { url: primary.url, authToken: primary.token }
  const [reader, writer] = [createClient({ ...options, fetch: send }), createClient(options)]
  await writer.execute('create table notes (text, number integer)')
  const notes = async () =>
    (await reader.execute('select text, number from notes order by number')).rows.map((row) => Array.from(row))
  expect(await notes()).toEqual([])
  await writer.execute("insert into notes values ('a \"]}' , 1)")
  expect(await notes()).toEqual([['a "]}', 1]])
  await writer.execute('alter table notes add column more')
  expect((await reader.execute('select more from notes')).rows).toHaveLength(1)
  await expect(reader.execute('select none from notes')).rejects.toThrow('no such column')
  expect(calls).toBe(4)
  await primary.restart()
  expect(await notes()).toEqual([['a "]}', 1]])
  expect(calls).toBe(6)
})
