/** What of a channel no schema can say: the fields that each kind needs, and those that it has no use for. */
import { Failure } from '../failure.ts'
import type { ChannelConfig, ChannelKind, ChannelSecrets } from './channel-resource.ts'

/** What each kind cannot be without. */
const needed: Readonly<Record<ChannelKind, readonly (keyof ChannelConfig | keyof ChannelSecrets)[]>> = {
  webhook: ['url', 'signing_secret'],
  slack: ['url'],
  teams: ['url'],
  pagerduty: ['routing_key'],
  email: ['smtp_host', 'mail_from', 'mail_to'],
}
const ofWebAddresses: readonly string[] = ['url', 'signing_secret', 'routing_key']

interface Checked {
  kind: ChannelKind
  config: ChannelConfig
  secrets: ChannelSecrets
}

const refuse = (param: string, message: string): never => {
  throw new Failure('invalid_parameter', { param, message })
}

export function checkChannel({ kind, config, secrets }: Checked): void {
  const all: Readonly<Record<string, unknown>> = { ...config, ...secrets }
  for (const field of needed[kind]) {
    const value = all[field]
    if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) {
      refuse(field, `A channel of the kind ${kind} needs ${field}`)
    }
  }
  const useless = ofWebAddresses.find(
    (field) =>
      all[field] !== undefined &&
      !needed[kind].some((each) => each === field) &&
      !(kind === 'pagerduty' && field === 'url'),
  )
  if (useless !== undefined) refuse(useless, `A channel of the kind ${kind} has no use for ${useless}`)
  if (kind !== 'email') return
  const { smtp_tls: tls, smtp_username: user } = config
  if ((user === null) !== (secrets.smtp_password === undefined)) {
    refuse(user === null ? 'smtp_username' : 'smtp_password', 'A user and a password go together')
  }
  if (tls === 'none' && user !== null)
    refuse('smtp_tls', 'A password is not sent without TLS: use starttls or implicit')
}

/** Refuses to send a stored secret to another receiver than the one that it was given for. */
export function checkReceiver(
  before: Omit<Checked, 'kind'>,
  after: Omit<Checked, 'kind'>,
  sent: Readonly<Record<string, unknown>>,
): void {
  const isOtherServer =
    after.config.smtp_host !== before.config.smtp_host ||
    after.config.smtp_port !== before.config.smtp_port ||
    (after.config.smtp_tls === 'none' && before.config.smtp_tls !== 'none')
  const stays = (secret: keyof ChannelSecrets) => after.secrets[secret] !== undefined && sent[secret] === undefined
  if (isOtherServer && stays('smtp_password')) {
    refuse('smtp_password', 'Send the password too: the one that is stored is for the former server')
  }
  if (after.secrets.url !== before.secrets.url && stays('routing_key')) {
    refuse('routing_key', 'Send the routing key too: the one that is stored is for the former address')
  }
}
