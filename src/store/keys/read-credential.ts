/**
 * What a gateway on another host reads the state with, and nothing else (fleet/README.md, Trust): a JSON Web Token for
 * ten minutes, signed with the Ed25519 key that the state's server trusts (RFC 8037), in sqld's form of claims
 * `{"p":{"ro":{"ns":[name]}}}`. Its shorter form, `{"a":"ro"}`, opens every namespace of a server, the ledger's too.
 *
 * Where there is no key, one static token is handed to all. Either is tried at start: it must open the state, and it
 * must not open the ledger, which a wrong choice of keys or namespaces would let every host read.
 */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Failure } from '../../failure.ts'
import { openRemoteDatabase, remoteAddress } from '../remote.ts'

const lifetimeMilliseconds = 10 * 60_000

export interface ReadCredential {
  token: string
  /** Milliseconds since the epoch; null for a static one. */
  expiresAt: number | null
}

export interface ReadCredentialOptions {
  stateUrl: string
  ledgerUrl: string
  signingKeyFile: string | undefined
  /** The credential to hand out if there is no key (a secret). */
  staticToken: string | undefined
  now(): number
}

/** Creates the function that returns a credential. Throws `invalid_parameter` if no safe one exists. */
export async function createReadCredentials(options: ReadCredentialOptions): Promise<() => ReadCredential> {
  const { stateUrl, ledgerUrl, signingKeyFile, staticToken, now } = options
  if (signingKeyFile === undefined && staticToken === undefined) {
    throw new Failure('invalid_parameter', {
      message:
        'Gateways need a credential to read the state: set SERVICE_STATE_SIGNING_KEY_FILE or SERVICE_STATE_READ_TOKEN',
      param: 'state_signing_key_file',
    })
  }
  const candidates =
    signingKeyFile === undefined
      ? [() => ({ token: staticToken ?? '', expiresAt: null })]
      : minters(readKey(signingKeyFile), stateUrl, now)
  const param = signingKeyFile === undefined ? 'state_read_token' : 'state_signing_key_file'
  for (const give of candidates) {
    if (!(await opens(stateUrl, 'state', give().token))) continue
    if (await opens(ledgerUrl, 'ledger', give().token)) {
      const message =
        'What gateways would read the state with opens the ledger too: give the two databases keys or namespaces of their own'
      throw new Failure('invalid_parameter', { message, param })
    }
    return give
  }
  const message = "The state's server does not take what gateways would read it with"
  throw new Failure('invalid_parameter', { message, param })
}

/** The server's namespace is named by the host's first label; a server without namespaces has one named `default`. */
function minters(key: KeyObject, stateUrl: string, now: () => number): (() => ReadCredential)[] {
  const [label = ''] = new URL(remoteAddress(stateUrl, 'state')).hostname.split('.')
  return [label, 'default'].map((namespace) => () => {
    const expiresAt = now() + lifetimeMilliseconds
    return { token: mintReadToken(key, namespace, expiresAt), expiresAt }
  })
}

/** A token that reads one namespace until an instant, in milliseconds since the epoch. */
export function mintReadToken(key: KeyObject, namespace: string, expiresAt: number): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { p: { ro: { ns: [namespace] } }, exp: Math.floor(expiresAt / 1000) }
  const signed = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part(claims)}`
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}

function readKey(file: string): KeyObject {
  try {
    const key = createPrivateKey(readFileSync(file))
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (cause) {
    const message = `${file} cannot be read as a private key in PEM`
    throw new Failure('invalid_parameter', { message, param: 'state_signing_key_file', cause })
  }
  const message = `${file} must hold an Ed25519 key: openssl genpkey -algorithm ed25519 makes one`
  throw new Failure('invalid_parameter', { message, param: 'state_signing_key_file' })
}

/** Whether the token can read the database. Throws `dependency_unavailable` if its server does not answer. */
async function opens(url: string, name: string, token: string): Promise<boolean> {
  const database = await openRemoteDatabase({ url, token, name })
  try {
    await database.read('select 1')
    return true
  } catch (error) {
    if (isRefusal(error)) return false
    throw error
  } finally {
    database.close()
  }
}

/** sqld answers 401 to a token that it does not take and 404 to one for another namespace. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Failure && error.cause instanceof Error && /HTTP status 40[0134]/.test(error.cause.message)
