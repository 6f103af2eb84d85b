/**
 * Secrets in files stand as references only. A reference is read when it is sent, never earlier, and its value is in no
 * message:
 *
 *   { env: NAME }               the variable
 *   { file: PATH }              the file's text without the line's end; the path is relative to the file that says it
 *   { command: [PROGRAM, …] }   what the program writes to standard output, without the line's end; no shell
 *   vault://PATH#FIELD          a field of a secret in HashiCorp Vault or OpenBao: GET $VAULT_ADDR/v1/PATH with the
 *                               header X-Vault-Token ($VAULT_TOKEN) and, where it is set, X-Vault-Namespace
 *                               ($VAULT_NAMESPACE). Version 1 and 2 of the key/value engine are understood; the path is
 *                               that of the API: vault://secret/data/openai#api_key for version 2
 */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { fromEnvironment } from '../../command/values.ts'
import type { Terminal } from '../../terminal/terminal.ts'

const vaultMilliseconds = 10_000
const commandMilliseconds = 30_000
const vaultAddress = /^vault:\/\/([^#\s]+)#([^#\s]+)$/

const hint =
  'Say where the secret is, never the secret: { env: NAME }, { file: PATH }, { command: [PROGRAM] } or vault://PATH#FIELD'

export const secretReference = z
  .union(
    [
      z.strictObject({ env: z.string().min(1) }),
      z.strictObject({ file: z.string().min(1) }),
      z.strictObject({ command: z.array(z.string()).min(1) }),
      z.string().regex(vaultAddress, hint),
    ],
    { error: hint },
  )
  .describe(
    'Where the secret is: { env: NAME }, { file: PATH }, { command: [PROGRAM, ARGUMENT] } or vault://PATH#FIELD',
  )
export type SecretReference = z.infer<typeof secretReference>

/** Reads references, each once. */
export class SecretReader {
  readonly #terminal: Pick<Terminal, 'environment'>
  readonly #fetch: typeof globalThis.fetch
  readonly #read = new Map<string, Promise<string>>()

  constructor(terminal: Pick<Terminal, 'environment'>, fetch: typeof globalThis.fetch = globalThis.fetch) {
    this.#terminal = terminal
    this.#fetch = fetch
  }

  /** The secret; `source` is the file that says the reference. Throws `usage` that names the reference. */
  async read(reference: SecretReference, source: string): Promise<string> {
    const key = JSON.stringify([reference, source])
    const reading = this.#read.get(key) ?? this.#valueOf(reference, source)
    this.#read.set(key, reading)
    return await reading
  }

  async #valueOf(reference: SecretReference, source: string): Promise<string> {
    const value = (await this.#textOf(reference, source)).replace(/\r?\n$/, '')
    if (value !== '') return value
    throw unreadable(reference, 'it is empty')
  }

  async #textOf(reference: SecretReference, source: string): Promise<string> {
    if (typeof reference === 'string') return await this.#fromVault(reference)
    if ('env' in reference) return fromEnvironment(reference.env, this.#terminal)
    return 'file' in reference ? fromFile(reference, source) : await this.#fromCommand(reference, source)
  }

  async #fromCommand(reference: { command: string[] }, source: string): Promise<string> {
    try {
      const child = Bun.spawn(reference.command, {
        cwd: directoryOf(source),
        env: this.#terminal.environment,
        stdio: ['ignore', 'pipe', 'inherit'],
        timeout: commandMilliseconds,
      })
      const text = await new Response(child.stdout).text()
      if ((await child.exited) === 0) return text
      throw unreadable(reference, `it ended with ${child.exitCode ?? child.signalCode}`)
    } catch (error) {
      if (error instanceof Failure) throw error
      throw unreadable(reference, 'the program cannot be started')
    }
  }

  async #fromVault(reference: string): Promise<string> {
    const [, path = '', field = ''] = vaultAddress.exec(reference) ?? []
    const address = fromEnvironment('VAULT_ADDR', this.#terminal).replace(/\/$/, '')
    const headers = new Headers({
      'x-vault-token': fromEnvironment('VAULT_TOKEN', this.#terminal),
      'x-vault-request': 'true',
    })
    const namespace = this.#terminal.environment.VAULT_NAMESPACE
    if (namespace !== undefined && namespace !== '') headers.set('x-vault-namespace', namespace)
    const signal = AbortSignal.timeout(vaultMilliseconds)
    const answer = await this.#fetch(`${address}/v1/${path}`, { headers, redirect: 'manual', signal }).catch(() => {
      throw unreadable(reference, `Vault at ${address} cannot be reached`)
    })
    if (!answer.ok) throw unreadable(reference, `Vault answers with status ${answer.status}`)
    const found = vaultAnswer.safeParse(await answer.json().catch(() => undefined))
    const value = found.success ? found.data[field] : undefined
    if (typeof value === 'string') return value
    throw unreadable(reference, `Vault has no text of this field there`)
  }
}

/** The fields of a secret: version 2 of the engine puts them one object deeper, beside their metadata. */
const vaultAnswer = z.object({ data: z.record(z.string(), z.unknown()) }).transform(({ data }) => {
  const inner = z.record(z.string(), z.unknown()).safeParse(data.data)
  return inner.success && 'metadata' in data ? inner.data : data
})

function fromFile(reference: { file: string }, source: string): string {
  try {
    return readFileSync(resolve(directoryOf(source), reference.file), 'utf8')
  } catch (error) {
    throw unreadable(reference, error instanceof Error && 'code' in error ? String(error.code) : 'it is not text')
  }
}

const directoryOf = (source: string): string => (source === '-' ? process.cwd() : dirname(resolve(source)))

const unreadable = (reference: SecretReference, why: string): Failure =>
  new Failure('usage', { message: `The secret ${JSON.stringify(reference)} cannot be read: ${why}` })
