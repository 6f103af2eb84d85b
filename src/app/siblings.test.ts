import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { workerDirectory } from '../lib/worker.ts'
import { temporaryDirectory } from '../store/testing/store.ts'
import { joinSiblings, type Siblings } from './siblings.ts'

const joined: Siblings[] = []
afterEach(() => {
  for (const each of joined.splice(0)) each.close()
})

const directory = temporaryDirectory()
afterAll(() => rmSync(directory, { recursive: true }))
const seen: Request[] = []

function joinAs(index: number, start: string, answer: () => Promise<Response>): Siblings {
  mkdirSync(workerDirectory(directory, index), { recursive: true })
  const siblings = joinSiblings({
    worker: { index, count: 2 },
    ...{ directory, start, secret: `secret of ${start}` },
    own: () => new Registry(),
    answer(request) {
      seen.push(request)
      return answer()
    },
  })
  joined.push(siblings)
  return siblings
}

const asked = {
  method: 'GET',
  headers: new Headers({ 'x-own': '1' }),
  body: null,
  signal: new AbortController().signal,
}

test('a worker takes session requests from its siblings only, and does not forward their secret', async () => {
  const one = joinAs(0, 'first', async () => new Response('of one'))
  const two = joinAs(1, 'second', async () => new Response('of two'))
  const owner = one.ownerOf(`${two.sessionPrefix}abc`)
  expect(await (await owner?.(asked))?.text()).toBe('of two')
  expect(seen.at(-1)?.headers.get('x-own')).toBe('1')
  expect(JSON.stringify([...(seen.at(-1)?.headers ?? [])])).not.toContain('secret of')
  const { port } = JSON.parse(readFileSync(join(workerDirectory(directory, 1), 'sibling.json'), 'utf8'))
  const guessed = { headers: { 'x-gatehouse-sibling': 'secret of first' } }
  expect((await fetch(`http://127.0.0.1:${port}/mcp`, guessed)).status).toBe(404)
})

test('every worker sends a caller to the same one, also after that has started again', async () => {
  const callers = Array.from({ length: 40 }, (_, index) => `caller ${index}`)
  const [one, two] = [
    joinAs(0, 'first', async () => new Response('0')),
    joinAs(1, 'second', async () => new Response('1')),
  ]
  const homes = async ({ homeOf }: Siblings, own: string) =>
    await Promise.all(callers.map(async (caller) => (await homeOf(caller)?.(asked))?.text() ?? own))
  const before = await homes(one, '0')
  expect(new Set(before)).toEqual(new Set(['0', '1']))
  expect(await homes(two, '1')).toEqual(before)
  two.close()
  const gone = callers[before.indexOf('1')] ?? ''
  expect(one.homeOf(gone)?.(asked)).rejects.toThrow()
  await Bun.sleep(10)
  expect(one.homeOf(gone)).toBeNull()
  joinAs(1, 'third', async () => new Response('1'))
  expect(await homes(one, '0')).toEqual(before)
})

test('leaves sessions of an earlier start, of this worker or of no worker unanswered', () => {
  const one = joinAs(0, 'first', async () => new Response())
  joinAs(1, 'again', async () => new Response())
  for (const id of ['1.second.abc', `${one.sessionPrefix}abc`, '7.again.abc', '..', '']) {
    expect(one.ownerOf(id)).toBeNull()
  }
  expect(one.ownerOf('1.again.abc')).not.toBeNull()
})
