/**
 * Serves the console under the path of `console_url`: its hashed files, and for every other address below that path the
 * one page, which reads the address itself, so that each state of each screen is a link.
 *
 * The page runs one script and one style of ours, talks to its own origin and to nothing else, is framed by nobody and
 * kept by nobody; the files may be kept for ever. What differs between installations (where the gateway is) stands in a
 * meta element as text, since a script in the page would need leave to run there; so does whether somebody is signed in,
 * which spares a call that would be refused. Where somebody is, who that is comes beside the script, not after it.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { Failure } from '../failure.ts'
import { consoleAssets } from './assets.ts'
import type { ConsoleAsset } from './bundle.ts'

export interface ConsoleOptions {
  consoleUrl(): string
  baseUrl(): string
  gatewayUrl(): string
  /** Whether the browser that asks for the page carries a session in force. */
  isSignedIn(request: Request): Promise<boolean>
  /** Whether there is an owner who can sign in. */
  isSetUp(): Promise<boolean>
}

/** What the app is told of the installation that serves it. */
export interface ConsoleInstallation {
  /** The path that all addresses of the console begin with; empty for the root. */
  path: string
  base_url: string
  gateway_url: string
  /** As of the page's request; null where the ledger did not say. */
  signed_in: boolean | null
  /** Whether there is an owner; said on the page for setting up alone, null elsewhere. */
  set_up: boolean | null
}

const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const pageHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': pagePolicy,
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** Asks who is signed in while the script is on its way; the script's own call then takes this answer. */
const callerAhead = '<link rel="preload" as="fetch" href="/v1/auth/session" crossorigin>'

const pageOptions = { access: 'public', internal: true } as const

export function consoleRoutes(options: ConsoleOptions) {
  const path = new URL(options.consoleUrl()).pathname.replace(/\/$/, '')
  let made: Promise<Served> | null = null
  const served = (): Promise<Served> => {
    made ??= consoleAssets().then((assets) => serve(assets, path))
    return made
  }
  const page = async (request: Request): Promise<Response> => {
    const { writePage } = await served()
    const asksToSetUp = new URL(request.url).pathname === `${path}/setup`
    const [signedIn, setUp] = await Promise.all([
      options.isSignedIn(request),
      asksToSetUp ? options.isSetUp() : null,
    ]).catch(
      // Where the ledger does not answer, the page comes all the same, and says so.
      () => [null, null] as const,
    )
    const [base, gateway] = [options.baseUrl(), options.gatewayUrl()]
    return pageResponse(writePage({ path, base_url: base, gateway_url: gateway, signed_in: signedIn, set_up: setUp }))
  }
  const routes = new Elysia({ name: 'console' })
    .use(conventions)
    .get(
      `${path}/assets/:name`,
      async ({ params: { name }, request }) => {
        const found = (await served()).files.get(name)
        if (found === undefined) throw new Failure('not_found')
        return fileResponse(found, request)
      },
      { ...pageOptions, params: z.object({ name: z.string() }) },
    )
    .get(
      `${path}/*`,
      ({ request }) => {
        // A console at the root must not answer for the API's addresses.
        if (/^\/(v1|\.well-known)\//.test(new URL(request.url).pathname)) throw new Failure('not_found')
        return page(request)
      },
      pageOptions,
    )
  return path === '' ? routes : routes.get(path, ({ request }) => page(request), pageOptions)
}

interface Packed {
  type: string
  plain: Uint8Array<ArrayBuffer>
  gzipped: Uint8Array<ArrayBuffer>
}

interface Served {
  writePage(installation: ConsoleInstallation): string
  files: ReadonlyMap<string, Packed>
}

const packed = (type: string, text: string): Packed => {
  const plain = new Uint8Array(Buffer.from(text))
  return { type, plain, gzipped: Bun.gzipSync(plain, { level: 9 }) }
}

function serve(assets: readonly ConsoleAsset[], path: string): Served {
  const named = (part: string, extension: string): string => {
    const found = assets.find(({ name }) => name.startsWith(part) && name.endsWith(extension))
    if (found === undefined) throw new Error(`The console's bundle has no ${part}${extension} file`)
    return `${path}/assets/${found.name}`
  }
  const [icon, style, script] = [named('icon-', '.svg'), named('main-', '.css'), named('main-', '.js')]
  const writePage = (installation: ConsoleInstallation): string => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Gatehouse</title>
<meta name="gatehouse" content="${Bun.escapeHTML(JSON.stringify(installation))}">
<link rel="icon" type="image/svg+xml" href="${icon}"><link rel="stylesheet" href="${style}">${
    installation.signed_in === true ? callerAhead : ''
  }
<script type="module" src="${script}"></script></head>
<body><noscript>The console needs JavaScript. The command line has the same functions.</noscript></body></html>`
  return {
    writePage,
    files: new Map(assets.map(({ name, type, text }) => [name, packed(type, text)])),
  }
}

const pageResponse = (html: string): Response => new Response(html, { headers: { ...pageHeaders } })

function fileResponse({ type, plain, gzipped }: Packed, request: Request): Response {
  const gzip = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
  return new Response(gzip ? gzipped : plain, {
    headers: {
      'content-type': type,
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'same-origin',
      vary: 'accept-encoding',
      ...(gzip ? { 'content-encoding': 'gzip' } : {}),
    },
  })
}
