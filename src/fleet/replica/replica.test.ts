import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { ReplicatorOrder } from '../protocol/replicator-message.ts'
import { movableClock } from '../testing/temporary-fleet.ts'
import { type BuiltState, Replica } from './replica.ts'
import type { ReplicatorProcess, ReplicatorProcessOptions } from './replicator-process.ts'

const log = '92f4ca70-385c-4a91-9ca0-9b54b8fceca3'
const otherLog = '00000000-385c-4a91-9ca0-9b54b8fceca3'
const head = { version: 3, nonce: 'n', history: 'h' }

/** A replicator that does nothing by itself. */
class Puppet implements ReplicatorProcess {
  readonly orders: ReplicatorOrder[] = []
  readonly options: ReplicatorProcessOptions
  killed = false

  constructor(options: ReplicatorProcessOptions) {
    this.options = options
  }

  send(order: ReplicatorOrder): void {
    this.orders.push(order)
  }

  kill(): void {
    this.killed = true
  }

  get open() {
    const [order] = this.orders
    if (order?.kind !== 'open') throw new RangeError('It was not told to open anything')
    return order
  }

  get syncs(): number {
    return this.orders.filter(({ kind }) => kind === 'sync').length
  }

  /** Leaves the files of a finished sync behind, and says so. */
  synced(): void {
    const { file } = this.open
    mkdirSync(dirname(file), { recursive: true })
    for (const suffix of ['', '-wal', '-shm']) writeFileSync(`${file}${suffix}`, 'content')
    const index = Buffer.alloc(32)
    Buffer.from(log.replaceAll('-', ''), 'hex').reverse().copy(index)
    writeFileSync(`${file}-client_wal_index`, index)
    writeFileSync(join(dirname(file), 'log'), log)
    this.options.onReport({ kind: 'synced', head, frame: 1 })
  }
}

let directory: string
let puppets: Puppet[]
let admitted: BuiltState[]
let admits: boolean
let news: number
let distrusted: number
let streamConnected: boolean
let clock: ReturnType<typeof movableClock>
let replica: Replica
let primary: Bun.Server<unknown>
let primaryLog: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-replica-'))
  puppets = []
  admitted = []
  ;[admits, streamConnected] = [true, true]
  news = distrusted = 0
  clock = movableClock()
  primaryLog = log
  primary = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response(greeting(primaryLog), { headers: { 'content-type': 'application/grpc-web' } }),
  })
  replica = startReplica()
})
afterEach(async () => {
  await replica.stop()
  await primary.stop(true)
  rmSync(directory, { recursive: true, force: true })
})

function startReplica(): Replica {
  return new Replica({
    directory: join(directory, 'replica'),
    dataDirectory: directory,
    command: [],
    start(options) {
      const puppet = new Puppet(options)
      puppets.push(puppet)
      return puppet
    },
    fetch,
    clock,
    log: silentLog,
    randomBytes,
    async admit(built) {
      admitted.push(built)
      return admits
    },
    onReplicaAdvanced: () => news++,
    onInvalid: () => distrusted++,
    onRefused: () => undefined,
    streamConnected: () => streamConnected,
  })
}

function greeting(of: string): Buffer<ArrayBuffer> {
  const message = Buffer.concat([Buffer.from([0x1a, of.length]), Buffer.from(of)])
  const frame = Buffer.alloc(5)
  frame.writeUInt32BE(message.length, 1)
  return Buffer.concat([frame, message])
}

const greet = async (puppet: Puppet): Promise<number> => {
  const { url, secret } = puppet.open
  const headers = { 'x-authorization': `Bearer ${secret}` }
  return (await fetch(`${url}/wal_log.ReplicationLog/Hello`, { method: 'POST', headers, body: 'x' })).status
}

const follow = () => replica.follow({ url: `http://127.0.0.1:${primary.port}`, token: 't' }, 60_000)

async function nth(count: number): Promise<Puppet> {
  await eventually(() => puppets.length >= count)
  const puppet = puppets[count - 1]
  if (puppet === undefined) throw new RangeError('There is no such replicator')
  return puppet
}

async function named(): Promise<Puppet> {
  follow()
  const first = await nth(1)
  first.synced()
  await eventually(() => replica.follows)
  return first
}

test('reads nothing before a copy has caught up and was admitted', async () => {
  expect(replica.waitingFor).toContain('has not said yet')
  follow()
  const first = await nth(1)
  expect(replica.waitingFor).toContain('being copied')
  expect(first.open.check).toBe(false)
  admits = false
  first.synced()
  await eventually(() => admitted.length === 1)
  expect(replica.follows).toBe(false)
  admits = true
  first.synced()
  await eventually(() => replica.follows)
  expect(replica.waitingFor).toBeNull()
  expect(news).toBe(1)
  first.synced()
  expect(news).toBe(2)
})

test('the next start continues with the last copy, after a check', async () => {
  await named()
  await replica.stop()
  replica = startReplica()
  expect(replica.waitingFor).toBeNull()
  follow()
  const next = await nth(2)
  expect(next.open.check).toBe(true)
  expect(next.open.file).toBe(puppets[0]?.open.file ?? '')
})

test('does not read a copy whose files do not fit together, and makes a new one', async () => {
  const { open } = await named()
  await replica.stop()
  rmSync(`${open.file}-wal`)
  replica = startReplica()
  expect(replica.waitingFor).not.toBeNull()
  follow()
  expect((await nth(2)).open.check).toBe(false)
})

test('keeps a primary with another log away from the copy in use, and copies it beside', async () => {
  const first = await named()
  expect(await greet(first)).toBe(200)
  primaryLog = otherLog
  expect(await greet(first)).toBe(503)
  expect(first.killed).toBe(true)
  const second = await nth(2)
  expect(second.open.file).not.toBe(first.open.file)
  expect(replica.waitingFor).toBeNull()
  second.synced()
  await eventually(() => replica.follows)
  expect(admitted.at(-1)).toMatchObject({ file: second.open.file, former: first.open.file, head })
  replica.opened()
  expect(readdirSync(join(directory, 'replica')).toSorted()).toEqual(['2', 'current'])
})

test('ends a silent replicator and starts an ended one again', async () => {
  const first = await named()
  clock.skip(11_000)
  const second = await nth(2)
  expect(first.killed).toBe(true)
  second.options.onEnd('SIGKILL')
  await nth(3)
  expect(replica.restarts).toBe(2)
  expect(replica.waitingFor).toBeNull()
})

test('ends a replicator that reports life but never finishes a sync', async () => {
  const first = await named()
  replica.sync()
  for (let waited = 0; waited < 16 && !first.killed; waited++) {
    clock.skip(1000)
    first.options.onReport({ kind: 'alive' })
    await Bun.sleep(5)
  }
  await nth(2)
  expect(first.killed).toBe(true)
})

test('stops reading a damaged copy', async () => {
  const first = await named()
  first.options.onReport({ kind: 'failed', reason: 'The check found: row missing', damaged: true })
  expect(distrusted).toBe(1)
  expect(replica.waitingFor).not.toBeNull()
  expect((await nth(2)).open.file).not.toBe(first.open.file)
})

test('keeps its copy while the primary is away, and starts over after repeated other failures', async () => {
  const first = await named()
  for (let failed = 0; failed < 20; failed++) {
    first.options.onReport({ kind: 'failed', reason: 'Replication(PrimaryHandshakeTimeout)', damaged: false })
  }
  expect(replica.follows).toBe(true)
  for (let failed = 0; failed < 5; failed++) {
    first.options.onReport({ kind: 'failed', reason: 'Injector error', damaged: false })
  }
  await nth(2)
  expect(distrusted).toBe(0)
  expect(replica.waitingFor).toBeNull()
})

test('runs one sync at a time: at once on a change, and every second without change notices', async () => {
  const first = await named()
  const before = first.syncs
  replica.sync()
  replica.sync()
  replica.sync()
  expect(first.syncs).toBe(before + 1)
  first.synced()
  expect(first.syncs).toBe(before + 2)
  first.synced()
  clock.skip(2000)
  await Bun.sleep(400)
  expect(first.syncs).toBe(before + 2)
  streamConnected = false
  await eventually(() => first.syncs === before + 3)
})

test('retries a failed sync after a second, even with change notices', async () => {
  const first = await named()
  const before = first.syncs
  replica.sync()
  first.options.onReport({ kind: 'failed', reason: 'Unavailable: snapshot not found', damaged: false })
  clock.skip(2000)
  await eventually(() => first.syncs === before + 2)
  first.synced()
  clock.skip(2000)
  await Bun.sleep(400)
  expect(first.syncs).toBe(before + 2)
})
