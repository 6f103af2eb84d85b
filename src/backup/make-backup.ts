/**
 * Makes a backup of an installation on local files while it runs: one file, a tar archive compressed by zstd, of a
 * manifest, both databases as of one moment, and the keys where a passphrase seals them.
 */
import { Database } from 'bun:sqlite'
import { createReadStream, createWriteStream, existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress } from 'node:zlib'
import { pack } from 'tar-stream'
import { Failure } from '../failure.ts'
import { fingerprintOfLedger } from '../store/keys/load-master-key.ts'
import { version } from '../version.ts'
import { copyPair, databaseFiles } from './copy-pair.ts'
import { keysName, type Manifest, manifestName } from './manifest.ts'
import { readerOf } from './reader.ts'
import { type Keys, keyFiles, sealKeys } from './sealed-keys.ts'

export interface BackupOptions {
  /** The data directory of the control plane. */
  data: string
  /** The file to write. It must not exist. */
  file: string
  /** Seals the keys; null leaves them out. */
  passphrase: string | null
  /** Where the master key is, unless it is in the data directory. */
  settings: { master_key?: string | undefined; master_key_next?: string | undefined }
  now(): number
}

/** Gives the manifest of the backup that was made. A backup that fails leaves nothing behind. */
export async function makeBackup({ data, file, passphrase, settings, now }: BackupOptions): Promise<Manifest> {
  for (const name of databaseFiles) {
    if (!existsSync(join(data, name))) {
      throw new Failure('invalid_parameter', {
        param: 'data',
        message: `${resolve(data)} holds no ${name}: name the data directory of a control plane with --data`,
      })
    }
  }
  if (existsSync(file)) {
    throw new Failure('conflict', { message: `${file} exists already: name another file`, param: 'file' })
  }
  const keys = passphrase === null ? null : sealKeys(readKeys(data), passphrase)
  const made = mkdtempSync(join(dirname(resolve(file)), `.${basename(file)}-`))
  try {
    copyPair(resolve(data), made)
    const files = [...databaseFiles.map((name) => ({ name, path: join(made, name) }))]
    const masterKey = await neededKey(made, { settings, dataDirectory: data })
    const manifest: Manifest = {
      format: 1,
      version,
      made_at: new Date(now()).toISOString(),
      ...(masterKey === null ? {} : { master_key: masterKey }),
      files: [
        ...(await Promise.all(files.map(async ({ name, path }) => ({ name, ...(await digestOf(path)) })))),
        ...(keys === null ? [] : [{ name: keysName, bytes: Buffer.byteLength(keys), sha256: sha256(keys) } as const]),
      ],
    }
    const whole = join(made, 'whole')
    await writeArchive(whole, manifest, files, keys)
    await rename(whole, file)
    return manifest
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

async function neededKey(made: string, keys: Pick<BackupOptions, 'settings'> & { dataDirectory: string }) {
  using ledger = new Database(join(made, 'ledger.db'), { readonly: true })
  return await fingerprintOfLedger({ ...keys, ledger: readerOf(ledger) })
}

const readKeys = (data: string): Keys =>
  Object.fromEntries(
    keyFiles.flatMap((name) =>
      existsSync(join(data, name)) ? [[name, readFileSync(join(data, name), 'utf8')] as const] : [],
    ),
  )

const sha256 = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')

export async function digestOf(path: string): Promise<{ bytes: number; sha256: string }> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const piece of createReadStream(path, { highWaterMark: 1024 * 1024 })) hasher.update(piece)
  return { bytes: statSync(path).size, sha256: hasher.digest('hex') }
}

async function writeArchive(
  to: string,
  manifest: Manifest,
  files: readonly { name: string; path: string }[],
  keys: string | null,
): Promise<void> {
  const archive = pack()
  const written = pipeline(archive, createZstdCompress(), createWriteStream(to, { mode: 0o600 }))
  archive.entry({ name: manifestName, mode: 0o600 }, JSON.stringify(manifest, null, 2))
  if (keys !== null) archive.entry({ name: keysName, mode: 0o600 }, keys)
  for (const { name, path } of files) {
    await pipeline(createReadStream(path), archive.entry({ name, mode: 0o600, size: statSync(path).size }))
  }
  archive.finalize()
  await written
  const handle = await open(to, 'r')
  await handle.sync()
  await handle.close()
}
