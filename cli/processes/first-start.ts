/**
 * What a start says (cli/README.md): where everything is; on the first start of an installation the administrator
 * token, once; and until an owner has a password a link that sets it, another one at each start. Both are printed only
 * where a person reads or a program asked for JSON; otherwise they go to files, so that they do not end in a container's
 * log.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Settings } from '../../src/config.ts'
import { version } from '../../src/version.ts'
import { columns } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ControlPlaneReady } from './child-message.ts'

export const firstStartFlags = {
  json: { type: 'boolean', description: 'Print where everything is as one line of JSON' },
  'admin-token-file': {
    type: 'string',
    description: 'Where the first start writes the administrator token (mode 0600) instead of showing it',
    valueHint: 'FILE',
  },
} as const

export interface Announcement {
  settings: Settings
  plane: ControlPlaneReady
  /** Null where no gateway was started along with the control plane. */
  gatewayUrl: string | null
  args: { json?: boolean | undefined; 'admin-token-file'?: string | undefined }
  terminal: Terminal
}

/** Announces that all is ready. Where that fails, the token is kept in the data directory before the failure goes on. */
export async function announce(announcement: Announcement): Promise<void> {
  try {
    await say(announcement)
  } catch (error) {
    keepToken(announcement)
    throw error
  }
}

async function say({ settings, plane, gatewayUrl, args, terminal }: Announcement): Promise<void> {
  const json = args.json === true
  const tokenFile = plane.admin_token === null ? null : tokenFileFor(settings.data, args, json, terminal)
  if (tokenFile !== null && plane.admin_token !== null) writeSecret(tokenFile, plane.admin_token)
  const consoleUrl = settings.console_url ?? `${plane.base_url}/console`
  if (json) {
    const shown = tokenFile === null ? { admin_token: plane.admin_token } : { admin_token_file: tokenFile }
    await terminal.write(
      `${JSON.stringify({
        ready: true,
        base_url: plane.base_url,
        gateway_url: gatewayUrl,
        console_url: consoleUrl,
        ...(plane.setup_url === null ? {} : { setup_url: plane.setup_url }),
        ...(plane.admin_token === null ? {} : shown),
      })}\n`,
    )
    return
  }
  const setupFile = terminal.interactive ? null : join(resolve(settings.data), 'setup-link')
  if (setupFile !== null && plane.setup_url !== null) writeSecret(setupFile, plane.setup_url)
  await terminal.write(text({ settings, plane, gatewayUrl, tokenFile, setupFile, name: terminal.name }))
}

/** Keeps the token of a first start that ended before it was announced: it exists once, and this was the once. */
export function keepToken({ settings, plane, terminal }: Pick<Announcement, 'settings' | 'plane' | 'terminal'>): void {
  if (plane.admin_token === null) return
  const path = join(resolve(settings.data), 'admin-token')
  writeSecret(path, plane.admin_token)
  terminal.note(`The administrator token was written to ${path}`)
}

function tokenFileFor(data: string, args: Announcement['args'], json: boolean, terminal: Terminal): string | null {
  const path = args['admin-token-file']
  if (typeof path === 'string') return resolve(path)
  return json || terminal.interactive ? null : join(resolve(data), 'admin-token')
}

/** By a new file in its place: what stood there may be readable by others, or be a link to somewhere else. */
function writeSecret(path: string, secret: string): void {
  const fresh = `${path}.${process.pid}.new`
  writeFileSync(fresh, `${secret}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, path)
}

interface Text {
  settings: Settings
  plane: ControlPlaneReady
  gatewayUrl: string | null
  tokenFile: string | null
  setupFile: string | null
  /** What the executable was called by. */
  name: string
}

function text({ settings, plane, gatewayUrl, tokenFile, setupFile, name }: Text): string {
  const places = [
    ['  control plane', plane.base_url],
    ...(gatewayUrl === null ? [] : [['  gateway', gatewayUrl]]),
    ['  data', resolve(settings.data)],
  ]
  const parts = [`Gatehouse ${version} is ready\n`, columns(places)]
  if (plane.admin_token !== null) {
    parts.push(
      tokenFile === null
        ? `The administrator token, shown only now:\n\n  ${plane.admin_token}\n`
        : `The administrator token is in ${tokenFile}\n`,
    )
  }
  if (plane.setup_url !== null) {
    parts.push(
      setupFile === null
        ? `To sign in, set the owner's password within 15 minutes:\n\n  ${plane.setup_url}\n`
        : `To sign in, set the owner's password within 15 minutes by the link in ${setupFile}\n`,
      `Later, ${name} auth setup-link makes another one\n`,
    )
  }
  if (plane.admin_token !== null && gatewayUrl !== null) {
    const bearer = tokenFile === null ? plane.admin_token : `$(cat ${shellQuoted(tokenFile)})`
    parts.push(`A first governed request:\n\n  ${curl(gatewayUrl, bearer)}\n`)
  }
  return `${parts.join('\n')}\n`
}

const curl = (gatewayUrl: string, bearer: string): string =>
  `curl ${gatewayUrl}/v1/chat/completions -H "Authorization: Bearer ${bearer}" -H "Content-Type: application/json" ` +
  `-d '{"model":"simulator/echo","messages":[{"role":"user","content":"Hello"}]}'`

/** For use within double quotes and a command substitution, where single quotes mean what they say. */
const shellQuoted = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`
