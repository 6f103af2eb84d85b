/**
 * The pages a person sees before there is a console: sign in, approve a program, set up the owner. Plain HTML without
 * requests to anywhere; one style and, on the setup page only, one script, both allowed by their hash (CSP Level 3).
 * Every text from outside goes through `escaped`.
 */

const escaped = (text: string): string => Bun.escapeHTML(text)

const style = `
:root { color-scheme: light dark; --line: light-dark(#d4d4d8, #3f3f46); --accent: light-dark(#1d4ed8, #93b4ff) }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; display: grid; place-items: center; min-height: 100vh;
  background: light-dark(#f4f4f5, #18181b); color: light-dark(#18181b, #f4f4f5) }
main { width: min(26rem, calc(100vw - 2rem)); padding: 1.5rem; box-sizing: border-box; border-radius: 6px;
  border: 1px solid var(--line); background: light-dark(#fff, #27272a) }
h1 { font-size: 1.25rem; margin: 0 0 1rem } p { margin: 0 0 1rem; overflow-wrap: anywhere }
label { display: block; font-size: .875rem } form { margin: 0 }
input { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: .5rem; margin: .25rem 0 1rem;
  border: 1px solid var(--line); border-radius: 6px; background: transparent; color: inherit }
.choices { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem }
button { font: inherit; padding: .5rem; border-radius: 6px; border: 1px solid var(--accent); cursor: pointer;
  width: 100%; background: transparent; color: var(--accent) }
button.plain { border: 0; width: auto; padding: 0; text-decoration: underline; font-size: .875rem }
code { font: 1rem ui-monospace, monospace; overflow-wrap: anywhere; user-select: all }
[role=alert] { border-left: 3px solid light-dark(#b91c1c, #fca5a5); padding-left: .75rem }
`

/** Takes the secret out of the fragment, which browsers do not send, and out of the history. */
const setupScript = `
const field = document.getElementById('secret')
if (location.hash.length > 1) {
  field.value = location.hash.slice(1)
  history.replaceState(null, '', location.pathname)
  field.parentElement.hidden = true
}
`

const sourceHash = (text: string): string => `'sha256-${new Bun.CryptoHasher('sha256').update(text).digest('base64')}'`

export interface Page {
  title: string
  /** HTML, already escaped. */
  content: string
  status?: number
  script?: string
  /** Where a form may lead beside here: browsers hold redirects after a form against it too. */
  formTargets?: readonly string[]
  headers?: Record<string, string>
}

/** A page as a response, with headers that keep it from being framed, kept, or made to do anything else. */
export function pageResponse({ title, content, status = 200, script, formTargets = [], headers = {} }: Page): Response {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escaped(title)}</title><style>${style}</style></head>
<body><main><h1>${escaped(title)}</h1>${content}</main>${script === undefined ? '' : `<script>${script}</script>`}
</body></html>`
  const policy = [
    "default-src 'none'",
    `style-src ${sourceHash(style)}`,
    ...(script === undefined ? [] : [`script-src ${sourceHash(script)}`]),
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'cache-control': 'no-store',
      // Not no-referrer: with it browsers send `Origin: null` with our own forms.
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  })
}

const alert = (message: string | null): string => (message === null ? '' : `<p role="alert">${escaped(message)}</p>`)

export const messagePage = (title: string, message: string, status = 200): Page => ({
  title,
  content: `<p>${escaped(message)}</p>`,
  status,
})

export const signInPage = (message: string | null, status = 200): Page => ({
  title: 'Sign in',
  status,
  content: `${alert(message)}<form method="post">
<input type="hidden" name="step" value="sign-in">
<label>E-mail address<input type="email" name="email" autocomplete="username" required autofocus></label>
<label>Password<input type="password" name="password" autocomplete="current-password" required></label>
<button>Sign in</button></form>`,
})

export interface Asking {
  program: string
  /** Where the code goes; null where it is shown. */
  redirectUri: string | null
  /** Null: a session. */
  tokenName: string | null
  person: string
  csrfToken: string
}

/** Asks a signed-in person whether a program may have what it asks for. */
export function approvalPage({ program, redirectUri, tokenName, person, csrfToken }: Asking): Page {
  const gets =
    tokenName === null
      ? 'It will act as you: it can do all that you can do, until you end its session.'
      : `It will get an API token named <strong>${escaped(tokenName)}</strong>, which you can revoke.`
  const goesTo =
    redirectUri === null
      ? 'You will be shown a code to type into it. Go on only if you started this yourself.'
      : `You will be sent on to <strong>${escaped(new URL(redirectUri).host)}</strong>, on this computer.`
  const hidden = `<input type="hidden" name="csrf_token" value="${escaped(csrfToken)}">`
  const choice = (step: string, words: string) =>
    `<form method="post">${hidden}<input type="hidden" name="step" value="${step}"><button>${words}</button></form>`
  return {
    title: 'Let a program in?',
    content: `<p>A program that calls itself <strong>${escaped(program)}</strong> asks for access. ${gets}</p>
<p>${goesTo}</p><div class="choices">${choice('deny', 'Deny')}${choice('approve', 'Approve')}</div>
<p></p><form method="post">${hidden}<input type="hidden" name="step" value="sign-out">
<p>Signed in as ${escaped(person)}. <button class="plain">Not you?</button></p></form>`,
    formTargets: redirectUri === null ? [] : [formTarget(redirectUri)],
  }
}

/** A redirect's origin as CSP writes it; its grammar has no IPv6 addresses, so the scheme has to stand for one. */
const formTarget = (redirectUri: string): string => {
  const { origin, hostname } = new URL(redirectUri)
  return hostname.startsWith('[') ? 'http:' : origin
}

export const codePage = (code: string, program: string): Page => ({
  title: 'Type this code',
  content: `<p>Give this code to ${escaped(program)} within a minute:</p><p><code>${escaped(code)}</code></p>
<p>Then you can close this page. Give it to nobody else.</p>`,
})

export const setupPage = (
  message: string | null,
  values: { secret: string; email: string; name: string },
  status = 200,
): Page => ({
  title: 'Set up Gatehouse',
  status,
  script: setupScript,
  content: `${alert(message)}<form method="post">
<label>Setup code (what follows # in the link)<input name="secret" id="secret" autocomplete="off" spellcheck="false" required value="${escaped(values.secret)}"></label>
<label>Your e-mail address<input type="email" name="email" autocomplete="username" required value="${escaped(values.email)}"></label>
<label>Your name<input name="name" autocomplete="name" required value="${escaped(values.name)}"></label>
<label>A new password, 12 characters or more<input type="password" name="password" autocomplete="new-password" minlength="12" required></label>
<button>Set up</button></form>`,
})
