/**
 * A browser that needs nothing but its npm package: Chromium's headless shell, with the libraries and fonts it would
 * otherwise take from the system, unpacked once beside the other caches. `GATEHOUSE_TEST_BROWSER` names another one.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { type Browser, chromium } from 'playwright-core'
import { z } from 'zod'
import { repository } from './executable.ts'

const packed = resolve(repository, 'node_modules/@sparticuz/chromium/bin')
const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(resolve(packed, '../package.json'), 'utf8')))
const unpacked = resolve(repository, `node_modules/.cache/gatehouse-browser-${version}`)

/** No sandbox, for containers run tests as root; the others keep Chromium from looking for its vendor's hosts. */
const flags = [
  '--no-sandbox',
  '--no-zygote',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const fontSettings = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${unpacked}/fonts</dir><cachedir>${unpacked}/font-cache</cachedir></fontconfig>`

let running: Browser | null = null

/**
 * The browser of all tests of this process, which ends with it: a start takes a second of processor time. Each test
 * opens a context of its own.
 */
export async function sharedBrowser(): Promise<Browser> {
  if (running?.isConnected() !== true) running = await launchBrowser()
  return running
}

export async function launchBrowser(): Promise<Browser> {
  const own = process.env.GATEHOUSE_TEST_BROWSER
  if (own !== undefined) return await chromium.launch({ executablePath: own, args: flags })
  await unpack()
  return await chromium.launch({
    executablePath: `${unpacked}/chromium`,
    args: flags,
    env: { ...process.env, LD_LIBRARY_PATH: `${unpacked}/al2023/lib`, FONTCONFIG_FILE: `${unpacked}/fonts.conf` },
  })
}

/** Others may do the same at once: each unpacks into a folder of its own, and the first to finish gives it the name. */
async function unpack(): Promise<void> {
  if (existsSync(unpacked)) return
  const mine = `${unpacked}.${process.pid}`
  mkdirSync(mine, { recursive: true })
  await Bun.write(`${mine}/chromium`, read('chromium.br'))
  chmodSync(`${mine}/chromium`, 0o700)
  for (const name of ['al2023', 'fonts']) await new Bun.Archive(read(`${name}.tar.br`)).extract(`${mine}/${name}`)
  await Bun.write(`${mine}/fonts.conf`, fontSettings)
  try {
    renameSync(mine, unpacked)
  } catch (error) {
    rmSync(mine, { recursive: true })
    if (!existsSync(unpacked)) throw error
  }
}

const read = (name: string): Uint8Array => new Uint8Array(brotliDecompressSync(readFileSync(`${packed}/${name}`)))
