/** `backup` and `restore`: an installation on local files as one file, and back. */
import { resolve } from 'node:path'
import { defineCommand } from 'citty'
import type { Settings } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { lockDirectory } from '../../src/lib/lock.ts'
import { readSettings } from '../command/settings.ts'
import { alreadyRunning } from '../processes/start-failure.ts'
import type { Terminal } from '../terminal/terminal.ts'

const args = {
  file: { type: 'positional', required: true, description: 'The backup', valueHint: 'FILE' },
  data: { type: 'string', description: 'The data directory of the control plane', valueHint: 'DIR' },
  config: { type: 'string', description: 'The settings file', valueHint: 'FILE' },
  'passphrase-env': {
    type: 'string',
    description: 'The environment variable with the passphrase that seals the keys; without it they are left out',
    valueHint: 'NAME',
  },
  json: { type: 'boolean', description: 'Print JSON' },
} as const

export const backup = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Write state, ledger and, sealed, the keys into one file, while all goes on' },
    args,
    async run({ args }) {
      const { settings } = readSettings(args, terminal.environment)
      requireFiles(settings, 'sqld and its peers make their own')
      const { makeBackup } = await import('../../src/backup/make-backup.ts')
      const passphrase = passphraseOf(args['passphrase-env'], terminal)
      const manifest = await makeBackup({ data: settings.data, file: args.file, passphrase, now: Date.now })
      if (args.json) return await terminal.write(`${JSON.stringify({ file: resolve(args.file), ...manifest })}\n`)
      const bytes = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0)
      await terminal.write(`Wrote ${args.file}: ${Math.ceil(bytes / 1e6)} MB of data as of ${manifest.made_at}\n`)
      if (passphrase === null) {
        terminal.note('Keys are not in it: keep the master key apart, or use --passphrase-env')
      }
    },
  })

export const restore = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Put a backup in the place of a stopped installation; limits and revocations stay' },
    args,
    async run({ args }) {
      const { settings } = readSettings(args, terminal.environment)
      requireFiles(settings, 'put their own backups of state and ledger of one moment back')
      const data = resolve(settings.data)
      const lock = lockDirectory(data)
      if (lock === null) {
        throw alreadyRunning(data, `The data directory ${data} is in use: stop Gatehouse first`)
      }
      try {
        const { restoreBackup } = await import('../../src/backup/restore-backup.ts')
        const restored = await restoreBackup({
          data,
          file: args.file,
          passphrase: passphraseOf(args['passphrase-env'], terminal),
          settings,
          now: Date.now,
        })
        if (args.json) return await terminal.write(`${JSON.stringify(restored)}\n`)
        const { manifest, endedAgain, kept, keys } = restored
        await terminal.write(`Restored ${data} as of ${manifest.made_at}\n`)
        if (endedAgain > 0) await terminal.write(`${endedAgain} tokens that ended since then stay ended\n`)
        if (keys.length > 0) await terminal.write(`Wrote ${keys.join(' and ')}\n`)
        if (kept !== null) terminal.note(`The former files are in ${kept}`)
        terminal.note('Start Gatehouse again. It grants from limits once its gateways have said what they hold')
      } finally {
        lock.release()
      }
    },
  })

function requireFiles({ state_url }: Settings, instead: string): void {
  if (state_url === undefined) return
  throw new Failure('usage', { message: `The databases are on a server (SERVICE_STATE_URL): ${instead}` })
}

function passphraseOf(name: string | undefined, { environment }: Terminal): string | null {
  if (name === undefined) return null
  const passphrase = environment[name]
  if (passphrase === undefined || passphrase === '') {
    throw new Failure('usage', { message: `The environment variable ${name} holds no passphrase` })
  }
  return passphrase
}
