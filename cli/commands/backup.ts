/** `backup` and `restore`: an installation on local files as one file, and back. */
import { existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { defineCommand } from 'citty'
import { noteBackup } from '../../src/backup/last-backup.ts'
import type { Settings } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { lockDirectory, lockFile } from '../../src/lib/lock.ts'
import { readSettings } from '../command/settings.ts'
import { alreadyRunning, dataFailure, fileReason, pathOf } from '../processes/start-failure.ts'
import { confirmAtTerminal } from '../terminal/confirm.ts'
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
      const manifest = await makeBackup({
        data: settings.data,
        file: args.file,
        passphrase,
        settings,
        now: Date.now,
      }).catch((thrown: unknown) => {
        throw backupFailure(thrown, args.file)
      })
      try {
        noteBackup(settings.data, { made_at: manifest.made_at, file: resolve(args.file) })
      } catch (thrown) {
        // The backup is made all the same, of a full disk too.
        const why = fileReason(thrown) ?? String(thrown)
        terminal.note(`The backup is whole, but doctor will not know of it: ${resolve(settings.data)}: ${why}`)
      }
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
    args: { ...args, yes: { type: 'boolean', description: 'At a terminal: do not ask first' } },
    async run({ args }) {
      const { settings } = readSettings(args, terminal.environment)
      requireFiles(settings, 'put their own backups of state and ledger of one moment back')
      const data = resolve(settings.data)
      const passphrase = passphraseOf(args['passphrase-env'], terminal)
      requireFile(args.file)
      await confirmAtTerminal(args.yes, `This replaces the databases in ${data} by those of ${args.file}`, terminal)
      const restored = await locked(data, async () => {
        const { restoreBackup } = await import('../../src/backup/restore-backup.ts')
        return await restoreBackup({ data, file: args.file, passphrase, settings, now: Date.now })
      }).catch((thrown: unknown) => {
        throw pathOf(thrown) === args.file ? unreadable(thrown, args.file) : dataFailure(thrown, data)
      })
      if (args.json) return await terminal.write(`${JSON.stringify(restored)}\n`)
      const { manifest, endedAgain, kept, keys } = restored
      await terminal.write(`Restored ${data} as of ${manifest.made_at}\n`)
      if (endedAgain > 0) await terminal.write(`${endedAgain} tokens that ended since then stay ended\n`)
      if (keys.length > 0) await terminal.write(`Wrote ${keys.join(' and ')}\n`)
      if (keys.includes('master-key-former')) {
        terminal.note(
          'A former master key opens this backup, and is the master key again: rotate it once Gatehouse runs',
        )
      }
      if (kept !== null) terminal.note(`The former files are in ${kept}`)
      terminal.note('Start Gatehouse again. It grants from limits once its gateways have said what they hold')
    },
  })

/** Works in a data directory while nothing runs on it. What fails leaves neither a directory nor a lock behind. */
async function locked<Result>(data: string, work: () => Promise<Result>): Promise<Result> {
  const missing = missingOf(data)
  let lock: ReturnType<typeof lockDirectory> = null
  let isDone = false
  try {
    lock = lockDirectory(data)
    if (lock === null) throw alreadyRunning(data, `The data directory ${data} is in use: stop Gatehouse first`)
    const result = await work()
    isDone = true
    return result
  } finally {
    lock?.release()
    if (!isDone) removeEmpty(data, { missing, isLocked: lock !== null })
  }
}

function removeEmpty(data: string, { missing, isLocked }: { missing: readonly string[]; isLocked: boolean }): void {
  const isEmpty = (path: string) => existsSync(path) && readdirSync(path).length === 0
  if (isLocked && readdirSync(data).join() === lockFile) rmSync(join(data, lockFile))
  for (const path of missing) if (isEmpty(path)) rmdirSync(path)
}

/** The directories that would have to be made, the innermost first. */
const missingOf = (path: string): string[] => (existsSync(path) ? [] : [path, ...missingOf(dirname(path))])

/** Names the file and what to do, where the file system refuses. */
function backupFailure(thrown: unknown, file: string): unknown {
  const reason = fileReason(thrown)
  if (reason === null) return thrown
  const folder = dirname(resolve(file))
  const why = existsSync(folder) ? reason : `the folder ${folder} does not exist: make it first`
  const message = `The backup ${resolve(file)} cannot be written: ${why}`
  return new Failure('output_unwritable', { message, cause: thrown })
}

/** Throws `invalid_parameter` before anything is locked or made. */
function requireFile(file: string): void {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isFile() === true) return
  const message = found === undefined ? `There is no file ${file}` : `${file} is no file: name a backup`
  throw new Failure('invalid_parameter', { param: 'file', message })
}

function unreadable(thrown: unknown, file: string): unknown {
  const message = `The backup ${resolve(file)} cannot be read: ${fileReason(thrown) ?? String(thrown)}`
  return new Failure('not_found', { message, cause: thrown })
}

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
