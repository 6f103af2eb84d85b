/**
 * The documentation page at `/docs`. The Elysia plugin writes the page; Scalar's script, which the page would take from
 * a CDN, is carried in the executable and served from here, under a path that its content names, so that it may be
 * cached for ever. Fonts, telemetry and the hosted services that Scalar offers are switched off, and the page's policy
 * (CSP) lets nothing be fetched from elsewhere whatever the script tries.
 *
 * Scalar brings its styles as elements that it makes while it runs, some of which it changes again, so that no digest
 * can allow them. A small script of ours goes before it and gives them the nonce of this one answer, and sets what
 * Scalar writes as style attributes by the way a policy allows. A style that came with data has neither and is not used.
 *
 * Only the page is taken from the plugin. Its own description of the routes is not served: it cannot read zod.
 */
import scalarScript from '../../../node_modules/@scalar/fastify-api-reference/dist/js/standalone.js' with {
  type: 'file',
}
import { version } from '../../version.ts'

const pagePath = '/docs'
const scriptPath = `${pagePath}/scalar-${version}.js`
const stylesPath = `${pagePath}/styles-${version}.js`

const stylesScript = `{
  const { nonce } = document.currentScript
  const { createElement } = Document.prototype
  Document.prototype.createElement = function (...asked) {
    const made = createElement.apply(this, asked)
    if (made instanceof HTMLStyleElement) made.nonce = nonce
    return made
  }
  const { setAttribute } = Element.prototype
  Element.prototype.setAttribute = function (name, value) {
    if (name === 'style') this.style.cssText = value
    else setAttribute.call(this, name, value)
  }
}
`

/** The page's only inline script is empty and holds Scalar's settings as attributes; it is allowed by its digest. */
const pagePolicy = (inlineScript: string, nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' 'sha256-${new Bun.CryptoHasher('sha256').update(inlineScript).digest('base64')}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

const scriptHeaders = {
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': 'public, max-age=31536000, immutable',
}

/** Members that the plugin's types do not know yet; the script that is carried reads them. */
const newerScalarConfig = {
  hideClientButton: true,
  telemetry: false,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
}

/** The page and its scripts, as paths to serve. */
export function documentationPage(): { path: string; respond(): Promise<Response> | Response }[] {
  let page: Promise<string> | null = null
  return [
    {
      path: pagePath,
      async respond() {
        page ??= pageText()
        const nonce = crypto.randomUUID()
        const text = (await page)
          .replaceAll('<style', `<style nonce="${nonce}"`)
          .replace('<head>', `<head><script nonce="${nonce}" src="${stylesPath}"></script>`)
        const [, inlineScript = ''] = /<script\s+id="api-reference"[^>]*>([^<]*)<\/script>/.exec(text) ?? []
        return new Response(text, {
          headers: {
            'content-type': 'text/html; charset=utf-8',
            'content-security-policy': pagePolicy(inlineScript, nonce),
            'cache-control': 'no-store',
          },
        })
      },
    },
    { path: scriptPath, respond: () => new Response(Bun.file(scalarScript), { headers: scriptHeaders }) },
    { path: stylesPath, respond: () => new Response(stylesScript, { headers: scriptHeaders }) },
  ]
}

async function pageText(): Promise<string> {
  // Loaded with the first page that is asked for: no start needs it.
  const { swagger } = await import('@elysiajs/swagger')
  const { Elysia } = await import('elysia')
  // Compiling routes would read the plugin's minified source and complain about it on stdout.
  const plugin = new Elysia({ aot: false }).use(
    swagger({
      path: pagePath,
      scalarCDN: scriptPath,
      documentation: { info: { title: 'Gatehouse API', description: 'The public API, version 1', version } },
      scalarConfig: {
        spec: { url: '/v1/openapi.json' },
        withDefaultFonts: false,
        ...newerScalarConfig,
      },
    }),
  )
  const response = await plugin.handle(new Request(`http://localhost${pagePath}`))
  return await response.text()
}
