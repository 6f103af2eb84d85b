/**
 * Sends one notice to one channel. Throws a `SendFailure` that says why in words, without an address or a secret.
 * Redirects are not followed. Addresses are checked each time (policies/checked-target.ts), those of mail servers too.
 */
import { callFailure } from '../../lib/http/call-failure.ts'
import { checkedAddress, checkedTarget, type OutboundRules } from '../../policies/checked-target.ts'
import { httpForms } from './http-forms.ts'
import { clipped, type Notice, textOf, titleOf } from './notice.ts'
import type { Channel } from './stored-channel.ts'

const sendMs = 10_000
/** A mail server answers several times. */
const mailMs = 20_000

export interface SendTools extends OutboundRules {
  fetch: typeof globalThis.fetch
  now(): number
}

export class SendFailure extends Error {
  /** Whether the receiver refuses this notice, whatever happens later. */
  readonly isFinal: boolean

  constructor(message: string, isFinal = false) {
    super(message)
    this.isFinal = isFinal
  }
}

export async function send(channel: Channel, notice: Notice, tools: SendTools): Promise<void> {
  if (channel.kind === 'email') return await sendMail(channel, notice, tools)
  const call = httpForms[channel.kind](channel, notice, tools.now())
  const signal = AbortSignal.timeout(sendMs)
  let answer: Response
  try {
    const target = await checkedTarget(new URL(call.url), tools)
    answer = await tools.fetch(target.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Gatehouse', ...call.headers, host: target.host },
      body: call.body,
      redirect: 'manual',
      signal,
    })
    await answer.body?.cancel()
  } catch (error) {
    throw failureOf(error)
  }
  if (answer.status >= 200 && answer.status < 300) return
  throw new SendFailure(`It answered ${answer.status}${hintOf(answer.status)}`, refusedNotices.includes(answer.status))
}

/** The answers to a notice that no repetition makes better; any other may be the channel's trouble of an hour. */
const refusedNotices: readonly number[] = [400, 413, 422]

const hintOf = (status: number): string =>
  status >= 300 && status < 400
    ? ': redirects are not followed'
    : status === 401 || status === 403 || status === 404 || status === 410
      ? ': its address or key is not valid (any more)'
      : ''

/** Errors of our own are for people; of others only the kind is said. */
function failureOf(error: unknown): SendFailure {
  const own = error instanceof Error && error.message.startsWith('It is at an address inside')
  const late = 'it did not answer in time'
  return new SendFailure(own ? error.message : `The call did not succeed: ${callFailure(error, late)}`)
}

async function sendMail({ id, config, secrets }: Channel, notice: Notice, tools: SendTools): Promise<void> {
  const { smtp_host: host, smtp_port: port, smtp_tls: tls, smtp_username: user, mail_from: from, mail_to: to } = config
  if (host === null || from === null || to.length === 0) throw new SendFailure('It has no server, sender or receiver')
  let timer: Timer | undefined
  try {
    // Loaded with the first mail: no other call waits for it.
    const { createTransport } = await import('nodemailer')
    const transport = createTransport({
      // The address that was checked; the certificate must still be the host's.
      ...{ host: await checkedAddress(host, tools), port, secure: tls === 'implicit', requireTLS: tls === 'starttls' },
      ...{ ignoreTLS: tls === 'none', tls: { servername: host } },
      ...(user === null ? {} : { auth: { user, pass: secrets.smtp_password ?? '' } }),
      ...{ connectionTimeout: sendMs, greetingTimeout: sendMs, socketTimeout: sendMs },
      ...{ disableFileAccess: true, disableUrlAccess: true },
    })
    const late = Promise.withResolvers<never>()
    timer = setTimeout(() => {
      transport.close()
      late.reject(new SendFailure('The mail server did not answer in time'))
    }, mailMs)
    const sending = transport.sendMail({
      ...{ from, to, subject: clipped(titleOf(notice), 200), text: textOf(notice) },
      messageId: `<${notice.id}@gatehouse.alerts>`,
      // RFC 5322 section 3.6.4: both mails of a firing name the same one, so that they are shown together.
      ...(notice.kind === 'test' ? {} : { references: `<${notice.firing.id}@gatehouse.alerts>` }),
      headers: { 'Auto-Submitted': 'auto-generated', 'X-Gatehouse-Channel': id },
    })
    await Promise.race([sending, late.promise])
  } catch (error) {
    throw mailFailure(error)
  } finally {
    clearTimeout(timer)
  }
}

/** 5yz of RFC 5321 to a message or a recipient is final; sign-in and connections may be mended. */
function mailFailure(error: unknown): SendFailure {
  if (error instanceof SendFailure) return error
  const code = error instanceof Error && 'responseCode' in error ? Number(error.responseCode) : null
  if (code === null || Number.isNaN(code)) return failureOf(error)
  return new SendFailure(`The mail server answered ${code}`, code >= 550 && code < 560)
}
