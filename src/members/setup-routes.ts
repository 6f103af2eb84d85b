/** The page `{console_url}/setup`, to which the one-time link of the first start leads. */
import { z } from 'zod'
import { validate } from '../api/body.ts'
import { type AnyRoute, route } from '../api/route.ts'
import { Failure } from '../failure.ts'
import { endReplacedSession, setupSchema, useSetup } from './auth-routes.ts'
import { isFromOurPage, keepSession, ownOrigins } from './browser.ts'
import type { MemberDependencies } from './dependencies.ts'
import { readForm } from './form.ts'
import { messagePage, pageResponse, setupPage } from './pages.ts'

const pageRoute = { tag: 'Sessions', access: 'public', reply: z.never(), internal: true } as const

export function setupRoutes(dependencies: MemberDependencies): AnyRoute[] {
  const path = `${new URL(dependencies.consoleUrl()).pathname.replace(/\/$/, '')}/setup`
  return [
    route({
      ...pageRoute,
      method: 'GET',
      path,
      summary: 'Asks the owner for a name, an e-mail address and a password',
      handle: () => pageResponse(setupPage(null, { secret: '', email: '', name: '' })),
    }),
    route({
      ...pageRoute,
      method: 'POST',
      path,
      summary: "Takes the owner's answer",
      handle: ({ requestId }, request) => setUp(dependencies, request, requestId),
    }),
  ]
}

async function setUp(dependencies: MemberDependencies, request: Request, requestId: string): Promise<Response> {
  const { settings, baseUrl, consoleUrl, addressOf } = dependencies
  const form = await readForm(request)
  try {
    if (!isFromOurPage(request, ownOrigins(baseUrl(), consoleUrl()))) throw new Failure('csrf_refused')
    const { session } = await useSetup(dependencies, validate(setupSchema, form), {
      address: addressOf(request),
      requestId,
    })
    await endReplacedSession(request, dependencies)
    const cookie = keepSession(session.secret, settings.session_lifetime_seconds, baseUrl())
    const done = messagePage('Welcome', 'You are the owner of this installation, and signed in.')
    return pageResponse({ ...done, headers: { 'set-cookie': cookie } })
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    const { secret = '', email = '', name = '' } = form
    return pageResponse(setupPage(error.message, { secret, email, name }, error.status))
  }
}
