/**
 * The device authorization endpoint (RFC 8628 section 3.1), and what the console's page `device` calls: a preview of
 * what waits behind a user code, and the decision. Both count as a guess of a code until it is found (`user-code.ts`).
 * An address with the code in it shows the question and never answers it (section 5.4).
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { recordChange } from '../../members/member-event.ts'
import { countAttempt, takeAttemptBack } from '../../members/people/throttle.ts'
import { requireAccount } from '../../members/sessions/authenticate-session.ts'
import type { LiveSession } from '../../members/sessions/session.ts'
import {
  type Asked,
  consentOf,
  consentQuestion,
  decisionEvent,
  requireBrowserSession,
  requireShown,
} from '../authorize/consent.ts'
import { deviceGrant } from '../clients/client-resource.ts'
import { findClient } from '../clients/stored-client.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { answered, refusalSchema } from '../protocol-answer.ts'
import { isScope } from '../scope.ts'
import { insertGrant } from '../tokens/grant.ts'
import { authorizeDevice } from './device-authorization.ts'
import { type DeviceCode, decide, findPending } from './stored-device-code.ts'
import { codeKey, codeRule, readUserCode } from './user-code.ts'

export const deviceRoutes = (dependencies: OAuthDependencies) =>
  new Elysia({ name: 'device' })
    .use(conventions)
    .post(
      '/v1/oauth/device_authorization',
      ({ requestId, request }) => {
        const address = dependencies.addressOf(request)
        return answered(dependencies, request, requestId, (parameters) =>
          authorizeDevice(dependencies, parameters, address),
        )
      },
      {
        access: 'public',
        form: z.object({
          client_id: z.string(),
          scope: z.string().optional().describe('Without it all that the application is registered for'),
          resource: z.string().optional().describe('May come several times (RFC 8707)'),
        }),
        response: {
          200: z.object({
            device_code: z.string(),
            user_code: z.string(),
            verification_uri: z.string(),
            verification_uri_complete: z.string(),
            expires_in: z.number().int().describe('Seconds'),
            interval: z.number().int().describe('Seconds between two requests for tokens'),
          }),
          400: refusalSchema,
          429: refusalSchema,
          500: refusalSchema,
          503: refusalSchema,
        },
        detail: { tags: [tag], summary: 'Gives a device its codes (RFC 8628); accepts JSON too' },
      },
    )
    .post(
      '/v1/oauth/device/preview',
      async ({ body: { user_code: typed }, request }) => {
        const session = await requireBrowserSession(request, dependencies)
        const { code, asked } = await requirePending(dependencies, typed, session)
        return {
          ...(await consentOf(dependencies, asked, session)),
          user_code: readUserCode(typed) ?? '',
          asked_at: timestamp(code.createdAt),
        }
      },
      {
        access: 'signed-in',
        body: z.strictObject({ user_code: userCode }),
        response: consentQuestion.extend({ user_code: z.string(), asked_at: z.iso.datetime() }),
        failures: [404, 429],
        detail: { tags: [tag], summary: 'Returns what the device asks for that shows this user code' },
      },
    )
    .post(
      '/v1/oauth/device/decision',
      async ({ body, requestId, request }) => {
        const session = await requireBrowserSession(request, dependencies)
        const { code, asked } = await requirePending(dependencies, body.user_code, session)
        if (body.user_id !== undefined) requireAccount(session, body.user_id)
        const shown = { scopes: body.scopes, clientName: body.client_name, user: body.user_id }
        if (body.approve) requireShown(asked, shown)
        await answer(dependencies, { code, asked, session, requestId, approve: body.approve })
        return { approved: body.approve }
      },
      {
        access: 'signed-in',
        body: z.strictObject({
          user_code: userCode,
          approve: z.boolean(),
          scopes: z.array(z.string()).optional().describe('To approve: the scopes that the preview showed'),
          user_id: z.string().optional().describe('To approve: the account that the page showed'),
          client_name: z.string().optional().describe('The name that the page showed; an application may be renamed'),
        }),
        response: z.object({ approved: z.boolean() }),
        failures: [404, 429],
        detail: { tags: [tag], summary: "Records the person's answer to a device" },
      },
    )

const tag = 'OAuth'
const userCode = z.string().max(100).describe('As the device shows it; case and dashes do not matter')

const notWaiting = 'No device waits with this code: look at it again, or start again on the device'

/** The code that waits, and what is asked for. Throws `not_found`, or `sign_in_throttled` after too many guesses. */
async function requirePending(
  { ledger, clock }: OAuthDependencies,
  typed: string,
  { userId }: LiveSession,
): Promise<{ code: DeviceCode; asked: Asked }> {
  const key = codeKey(userId)
  await countAttempt(ledger, key, codeRule, clock.now())
  const written = readUserCode(typed)
  const code = written === null ? null : await findPending(ledger, written, clock.now())
  const client = code === null ? null : await findClient(ledger, code.clientId)
  if (code === null || client === null || client.deactivatedAt !== null) {
    throw new Failure('not_found', { param: 'user_code', message: notWaiting })
  }
  await ledger.write([takeAttemptBack(key)])
  return { code, asked: { client, scope: code.scope.filter(isScope), resources: code.resources } }
}

interface Answer {
  code: DeviceCode
  asked: Asked
  session: LiveSession
  requestId: string
  approve: boolean
}

/** One transaction: of two answers at once the second is refused with 409, and a grant is there or not. */
async function answer(dependencies: OAuthDependencies, { code, asked, session, requestId, approve }: Answer) {
  const { clock, recorder, settings } = dependencies
  const [now, { client, scope, resources }] = [clock.now(), asked]
  const taken = { param: 'user_code', message: 'This code was answered already, or has expired' }
  if (!approve) {
    const how = { refused: 'access_denied', details: { grant_type: deviceGrant } }
    const event = await decisionEvent(dependencies, 'oauth.denied', asked, session, requestId, how)
    return await recordChange(recorder, { event, ledger: decide(code, 'denied', now) }, taken)
  }
  const grant = insertGrant(dependencies, {
    ...{ clientId: client.id, userId: session.userId, scope, resources, codeHash: code.hash },
    ...{ redirectUri: '', codeChallenge: '' },
    // A device that asks just after the last moment still gets what the person approved.
    codeExpiresAt: Math.max(code.expiresAt, now + settings.oauth_code_seconds * 1000),
  })
  const how = { details: { grant_type: deviceGrant, grant_id: grant.id } }
  const event = await decisionEvent(dependencies, 'oauth.authorized', asked, session, requestId, how)
  await recordChange(recorder, { event, ledger: [...decide(code, 'approved', now), ...grant.statements] }, taken)
}
