import { expect, test } from 'bun:test'
import { until } from '../../../test/support/eventually.ts'
import type { Json, McpConnection, McpServerRecord, McpServers } from '../connection.ts'
import { LateServers } from './late-servers.ts'
import { listKinds, listPage } from './lists.ts'
import { McpSession } from './session.ts'

type Answer = (params: Json, signal: AbortSignal) => Json | Promise<Json>

interface Slow {
  opening?: (name: string) => Promise<void>
  patienceMilliseconds?: number
}

const record = (name: string): McpServerRecord => ({
  id: name,
  name,
  version: 1,
  timeoutMilliseconds: 1000,
  approval: 'required',
})

function sessionWith(
  answers: Record<string, Answer>,
  { opening = async () => undefined, patienceMilliseconds = 5000 }: Slow = {},
) {
  const looked: string[] = []
  const servers: McpServers = {
    list: () => Object.keys(answers).map(record),
    async connect(server): Promise<McpConnection> {
      await opening(server.name)
      return {
        server,
        capabilities: { tools: {} },
        instructions: null,
        modern: false,
        request: async (_method, params = {}, { signal }) => (await answers[server.name]?.(params, signal)) ?? {},
        notify: async () => undefined,
        close: async () => undefined,
      }
    },
    isModern: () => false,
    approved: ({ name }, _kind, offers) => {
      looked.push(name)
      return [...offers]
    },
    onChange: () => () => undefined,
    unsolicited: 0,
  }
  const governor = { ask: () => Promise.reject(new Error('unasked')), tell: async () => null, mayTell: () => true }
  const token = { id: 't', hash: 'h' }
  const session = new McpSession({
    ...{ id: crypto.randomUUID(), label: 'l', token, owner: 'o', servers, governor },
    protocolVersion: '2025-11-25',
    capabilities: {},
    evicted: () => undefined,
  })
  const missing: string[] = []
  const repeating: string[] = []
  const list = listKinds.get('tools/list')
  if (list === undefined) throw new Error('There is no such list')
  const { signal } = new AbortController()
  const late = new LateServers({
    recordsChanged(concerns = () => true) {
      if (concerns(session)) session.recordsChanged()
    },
  })
  const page = (cursor: unknown) =>
    listPage({
      ...{ list, session, servers, cursor, signal, late, cursorKey: new Uint8Array(32) },
      timeoutMilliseconds: patienceMilliseconds,
      mayUse: () => true,
      missing: ({ name }) => void missing.push(name),
      repeats: ({ name }) => void repeating.push(name),
    })
  /** All pages, by following their cursors. */
  const all = async () => {
    const names: unknown[] = []
    let pages = 0
    let cursor: unknown
    do {
      const { tools, nextCursor } = (await page(cursor)) as { tools: Json[]; nextCursor?: string }
      names.push(...tools.map(({ name }) => name))
      cursor = nextCursor
      pages += 1
    } while (cursor !== undefined && pages < 1000)
    return { names, pages }
  }
  return { page, all, missing, repeating, looked, session }
}

const tools = (count: number, start = 0): Json[] =>
  Array.from({ length: count }, (_, index) => ({ name: `t${start + index}` }))

test('lists the pages of all servers without a gap or a duplicate', async () => {
  const paged: Answer = ({ cursor }) => {
    const start = Number(cursor ?? 0)
    return { tools: tools(300, start), ...(start < 900 ? { nextCursor: String(start + 300) } : {}) }
  }
  const { all } = sessionWith({ a: paged, b: paged })
  const { names, pages } = await all()
  expect(new Set(names).size).toBe(2400)
  expect(names).toHaveLength(2400)
  expect(pages).toBe(4)
})

test('takes nothing for the offers of a server that does not answer, so that its first use begins later', async () => {
  const down: Answer = () => Promise.reject(new Error('down'))
  const { all, missing, looked } = sessionWith({
    down,
    empty: () => ({ tools: [] }),
    good: () => ({ tools: tools(1) }),
  })
  expect((await all()).names).toEqual(['good__t0'])
  expect(missing).toEqual(['down'])
  expect(looked).toEqual(['empty', 'good'])
})

test('moves on from a server whose pages never end', async () => {
  let count = 0
  const { all } = sessionWith({
    endless: () => {
      count += 1
      return { tools: [], nextCursor: String(count) }
    },
    same: () => ({ tools: tools(1), nextCursor: 'always' }),
    good: () => ({ tools: tools(1) }),
  })
  const { names } = await all()
  expect(names.at(-1)).toBe('good__t0')
  expect(count).toBe(100)
})

test('leaves only the failing server out of the list', async () => {
  const { all, missing } = sessionWith({
    broken: () => Promise.reject(new Error('gone')),
    odd: () => ({ tools: [null, 1, { name: 7 }, 'x'], nextCursor: 5 }),
    not: () => ({ tools: 'none' }),
    good: () => ({ tools: tools(1) }),
  })
  expect((await all()).names).toEqual(['good__t0'])
  expect(missing).toEqual(['broken'])
})

test('leaves hanging servers out, however many, and lists late pages later', async () => {
  const untilLate: Answer = (_, signal) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const slow: Answer = async ({ cursor }) => {
    if (cursor === undefined) await Bun.sleep(60)
    return cursor === undefined ? { tools: tools(1), nextCursor: 'more' } : { tools: tools(1, 1) }
  }
  const good: Answer = () => ({ tools: tools(1) })
  const answers = { hangs: untilLate, too: untilLate, slow, good }
  const { page, all, missing } = sessionWith(answers, { patienceMilliseconds: 100 })
  const firstPage = (await page(undefined)) as { tools: Json[]; nextCursor?: string }
  expect(firstPage.tools.map(({ name }) => name)).toEqual(['slow__t0'])
  expect(missing).toEqual(['hangs', 'too'])
  expect((await all()).names).toEqual(['slow__t0', 'slow__t1', 'good__t0'])
})

test('leaves out a server that opens late and notifies its caller that the list changed', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const good: Answer = () => ({ tools: tools(1) })
  const opening = (name: string) => (name === 'late' ? promise : Promise.resolve())
  const { all, missing, session } = sessionWith({ late: good, good }, { opening, patienceMilliseconds: 50 })
  expect((await all()).names).toEqual(['good__t0'])
  expect(missing).toEqual(['late'])
  const stream = session.listen()?.getReader()
  resolve()
  let told = ''
  while (!told.includes('notifications/tools/list_changed')) {
    told += new TextDecoder().decode((await stream?.read())?.value)
  }
  expect((await all()).names).toEqual(['late__t0', 'good__t0'])
})

test('waits once for a server that hangs, and lists it again once it has answered', async () => {
  let answersAfter = Number.POSITIVE_INFINITY
  const answers: Record<string, Answer> = {
    good: () => ({ tools: tools(1) }),
    async stuck(_, signal) {
      if (answersAfter > 1000)
        return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      await Bun.sleep(answersAfter)
      return { tools: tools(1) }
    },
  }
  const { all, session } = sessionWith(answers, { patienceMilliseconds: 2000 })
  const timed = async () => {
    const began = performance.now()
    const { names } = await all()
    return [names, performance.now() - began >= 2000 ? 'waited' : 'at once']
  }
  expect(await timed()).toEqual([['good__t0'], 'waited'])
  expect(await timed()).toEqual([['good__t0'], 'at once'])
  expect(session.listChanges).toBe(0)
  answersAfter = 600
  expect(await timed()).toEqual([['good__t0'], 'at once'])
  await until('the caller is told to list again', () => session.listChanges > 0)
  expect(await timed()).toEqual([['good__t0', 'stuck__t0'], 'at once'])
})

test('lists a server that was late at once where it answers at once again', async () => {
  let hangs = true
  const answers: Record<string, Answer> = {
    stuck: (_, signal) =>
      hangs
        ? new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        : { tools: tools(1) },
  }
  const { all } = sessionWith(answers, { patienceMilliseconds: 50 })
  expect((await all()).names).toEqual([])
  hangs = false
  expect((await all()).names).toEqual(['stuck__t0'])
})

test('refuses a cursor of another list', async () => {
  const { page } = sessionWith({ a: () => ({}) })
  const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const cursor of ['x', 5, '', made(['gone', null, 0]), made(['a', 5, 0]), made(['a', null, -1]), made({})]) {
    await expect(page(cursor)).rejects.toMatchObject({ code: -32602 })
  }
})

test('sends no forged or foreign cursor to a server', async () => {
  const cursors: unknown[] = []
  const own: Answer = ({ cursor }) => {
    cursors.push(cursor)
    return cursor === undefined ? { tools: tools(500), nextCursor: 'own' } : { tools: [] }
  }
  const [one, other] = [sessionWith({ a: own }), sessionWith({ a: own })]
  const { nextCursor } = await one.page(undefined)
  const changed = `${String(nextCursor).slice(0, 22)}${Buffer.from('["a","words of the caller",1]').toString('base64url')}`
  for (const cursor of [changed, String(nextCursor).slice(22)]) {
    await expect(one.page(cursor)).rejects.toMatchObject({ code: -32602 })
  }
  await expect(other.page(nextCursor)).rejects.toMatchObject({ code: -32602 })
  expect(cursors).toEqual([undefined])
  await one.page(nextCursor)
  expect(cursors).toEqual([undefined, 'own'])
})

test('shows an offer listed twice once, as it was first, and ends a cycle of cursors', async () => {
  let asked = 0
  const { all, repeating } = sessionWith({
    round({ cursor }) {
      asked += 1
      const next = cursor === 'p2' ? 'p3' : 'p2'
      return { tools: [{ name: 'two', title: String(asked) }, ...tools(1), { name: 'two' }], nextCursor: next }
    },
    sound: () => ({ tools: tools(2) }),
  })
  expect((await all()).names).toEqual(['round__two', 'round__t0', 'sound__t0', 'sound__t1'])
  expect(asked).toBe(3)
  expect(repeating).toEqual(['round'])
})
