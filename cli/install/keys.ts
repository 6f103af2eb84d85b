/**
 * The keys of an installation whose databases are on a libSQL server: one key pair a database, so that what a gateway
 * may read the state with opens nothing else; the control plane's write tokens; the master key. Nothing is
 * overwritten.
 */

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { defineCommand } from 'citty'
import type { Terminal } from '../terminal/terminal.ts'
import { writeFiles } from './write-files.ts'

export const keys = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Create the keys of a libSQL primary and of its control planes, as files in a directory' },
    args: {
      directory: {
        type: 'positional',
        required: true,
        description: 'Made where it is missing; nothing in it is overwritten',
      },
    },
    async run({ args: { directory } }) {
      writeFiles(directory, keyFiles())
      await terminal.write(`${directory}\n`)
      terminal.note('Keep a copy of control-plane.env apart from the databases: without its master key they are lost')
    },
  })

/** Name, content and mode of each file. The public keys are for the servers, which may run as another user. */
export function keyFiles(): [name: string, content: string, mode: number][] {
  const [state, ledger] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
  const environment = {
    SERVICE_STATE_TOKEN: writeToken(state.privateKey),
    SERVICE_LEDGER_TOKEN: writeToken(ledger.privateKey),
    SERVICE_MASTER_KEY: randomBytes(32).toString('base64'),
  }
  const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`)
  return [
    ['state-public.pem', state.publicKey.export({ type: 'spki', format: 'pem' }).toString(), 0o644],
    ['ledger-public.pem', ledger.publicKey.export({ type: 'spki', format: 'pem' }).toString(), 0o644],
    ['state-signing.pem', state.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), 0o600],
    ['control-plane.env', lines.join(''), 0o600],
  ]
}

/**
 * A JSON Web Token (RFC 7519, EdDSA by RFC 8037) that lets its bearer write; sqld reads the claim `a`. It does not end.
 */
function writeToken(key: KeyObject): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'EdDSA', typ: 'JWT' })}.${part({ a: 'rw' })}`
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}
