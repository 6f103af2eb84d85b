/** Sinks as records: where copies of the record go, in which form, and how far each has got. */
import { z } from 'zod'
import { idParams, resource, secret } from '../api/resource.ts'
import { nameText, noSecret } from '../identity/free-text.ts'
import { longestCondition } from '../inspection/condition.ts'
import { headersSchema } from '../providers/headers.ts'

export const sinkKinds = ['http', 'splunk', 'datadog', 's3', 'otlp', 'syslog', 'kafka', 'clickhouse'] as const
export type SinkKindName = (typeof sinkKinds)[number]

export const sinkFormats = ['records', 'events', 'ocsf'] as const
export type SinkFormat = (typeof sinkFormats)[number]

const plain = (longest: number) =>
  z
    .string()
    .min(1)
    .max(longest)
    .regex(/^[\x20-\x7e]+$/, 'Write visible ASCII characters')
    .refine(...noSecret)
const name = (what: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,249}$/, 'Write letters, digits and . _ -')
    .describe(what)
const secretText = (what: string) => z.string().min(1).max(16_384).describe(what).meta(secret)

const configFields = {
  ca_certificate: z
    .string()
    .max(65_536)
    .regex(/-----BEGIN CERTIFICATE-----/, 'Write certificates in PEM')
    .describe('The authority of the receiver’s certificate, in PEM; default: those of the system')
    .optional(),
  s3: z
    .strictObject({
      bucket: name('The bucket'),
      region: name('Its region').default('us-east-1'),
      prefix: z
        .string()
        .max(500)
        .regex(/^([A-Za-z0-9._=-]+\/)*$/, 'Write folders, each with a slash after it')
        .describe('What stands before the name of each object')
        .default('gatehouse/'),
      lock_days: z
        .number()
        .int()
        .min(1)
        .max(36_500)
        .describe('Object Lock: how long no object can be changed')
        .optional(),
      lock_mode: z
        .enum(['governance', 'compliance'])
        .describe('Object Lock: whether anybody may lift it')
        .default('compliance'),
      every_seconds: z.number().int().min(1).max(3600).describe('An object is written at least this often').default(60),
    })
    .describe('For the kind s3')
    .optional(),
  splunk: z
    .strictObject({
      index: name('The index').optional(),
      source: plain(200).describe('The source').default('gatehouse'),
      sourcetype: plain(200).describe('The source type').default('_json'),
    })
    .describe('For the kind splunk')
    .optional(),
  datadog: z
    .strictObject({
      service: plain(100).describe('The service').default('gatehouse'),
      tags: plain(1000).describe('Tags, as KEY:VALUE,KEY:VALUE').optional(),
    })
    .describe('For the kind datadog')
    .optional(),
  syslog: z
    .strictObject({
      facility: z.number().int().min(0).max(23).describe('The facility (RFC 5424 section 6.2.1)').default(13),
      app_name: z
        .string()
        .regex(/^[\x21-\x7e]{1,48}$/, 'Write 1 to 48 visible ASCII characters')
        .describe('The name of the application in each message')
        .default('gatehouse'),
    })
    .describe('For the kind syslog')
    .optional(),
  kafka: z
    .strictObject({
      topic: name('The topic'),
      mechanism: z
        .enum(['plain', 'scram-sha-256', 'scram-sha-512'])
        .describe('How user and password are shown')
        .default('scram-sha-512'),
    })
    .describe('For the kind kafka')
    .optional(),
  clickhouse: z
    .strictObject({
      database: name('The database').default('default'),
      table: name('The table').default('gatehouse_events'),
    })
    .describe('For the kind clickhouse')
    .optional(),
}
export const configSchema = z.object(configFields)
export type SinkConfig = z.infer<typeof configSchema>

export const credentialsSchema = z
  .strictObject({
    token: secretText('A token: of Splunk’s HTTP Event Collector, of Datadog, or a bearer token').optional(),
    username: secretText('The user of ClickHouse, Kafka or basic authentication').optional(),
    password: secretText('Its password').optional(),
    access_key_id: secretText('The id of the access key of S3').optional(),
    secret_access_key: secretText('The access key of S3').optional(),
    client_certificate: secretText('The certificate that syslog or Kafka is shown, in PEM').optional(),
    client_key: secretText('Its private key, in PEM').optional(),
    headers: headersSchema.optional(),
  })
  .describe('Stored encrypted and never shown')
export type SinkCredentials = z.infer<typeof credentialsSchema>

const fields = {
  name: nameText(64).describe('What the sink is called'),
  url: z
    .string()
    .min(1)
    .max(2048)
    .describe('Where it is: https://host/path; tls://host:6514 for syslog; kafkas://host:9093,host:9093 for Kafka'),
  format: z
    .enum(sinkFormats)
    .describe('records: as they are chained, which can be proved; events: as the API shows them; ocsf: OCSF 1.5'),
  filter: z
    .string()
    .min(1)
    .max(longestCondition)
    .describe('Which events it gets, in CEL: event.verdict != "allow"; without it all'),
  enabled: z
    .boolean()
    .describe('Whether it gets anything; enabled again, it gets what came meanwhile, as far as retention has kept it'),
}

export const createSinkBody = z.strictObject({
  name: fields.name,
  kind: z.enum(sinkKinds).describe('What the receiver speaks'),
  url: fields.url,
  format: fields.format.optional(),
  filter: fields.filter.optional(),
  start: z
    .enum(['now', 'beginning'])
    .describe('Whether it begins with the next record or with the oldest that is kept')
    .default('now'),
  enabled: fields.enabled.default(true),
  ...configFields,
  credentials: credentialsSchema.optional(),
})

const updateSinkBody = z.strictObject({
  name: fields.name.optional(),
  url: fields.url.optional(),
  format: fields.format.optional(),
  filter: fields.filter.nullable().optional(),
  enabled: fields.enabled.optional(),
  ca_certificate: configFields.ca_certificate.nullable(),
  s3: configFields.s3.nullable(),
  splunk: configFields.splunk.nullable(),
  datadog: configFields.datadog.nullable(),
  syslog: configFields.syslog.nullable(),
  kafka: configFields.kafka.nullable(),
  clickhouse: configFields.clickhouse.nullable(),
  credentials: credentialsSchema.nullable().optional(),
})

export const sinkStates = ['delivering', 'caught_up', 'failing', 'disabled'] as const

const sinkSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  kind: z.enum(sinkKinds),
  url: z.string(),
  format: z.enum(sinkFormats),
  filter: z.string().nullable(),
  enabled: z.boolean(),
  ...configFields,
  credential_names: z.array(z.string()).describe('Which credentials are stored; of headers each: headers.NAME'),
  state: z.enum(sinkStates),
  lag_records: z.number().int().describe('How many records it has not got yet'),
  lag_seconds: z
    .number()
    .int()
    .describe('How long the oldest of them waits: since it happened, or since the sink was made'),
  delivered: z.number().int().describe('Records, or events, that it took, since it was made'),
  refused: z.number().int().describe('Those that it refused; an event names each'),
  lost: z.number().int().describe('Records that retention removed before it had them'),
  error: z.string().nullable().describe('Why the last try failed'),
  next_try_at: z.iso.datetime().nullable(),
  delivered_at: z.iso.datetime().nullable().describe('When it last took something'),
  created_at: z.iso.datetime(),
  version: z.number().int(),
})

export type CreateSink = z.infer<typeof createSinkBody>
export type SinkReply = z.infer<typeof sinkSchema>

export const sinkResource = resource({
  name: 'sink',
  one: 'sink',
  plural: 'sinks',
  path: '/v1/sinks',
  tag: 'Events',
  access: { read: 'catalog:read', write: 'members:write' },
  params: idParams,
  about: 'Send the record on: to a SIEM, an archive or a stream',
  summaries: {
    list: 'List sinks with their state and lag, in the order they were made',
    get: 'Show one sink, without its credentials',
    create: 'Add a sink',
    update: 'Change a sink',
    delete: 'Delete a sink, with its credentials and its place in the record',
  },
  notes: {
    create: 'only who sees the events of every team may',
    update: 'another url needs the credentials again; null takes some away',
  },
  record: sinkSchema,
  create: createSinkBody,
  update: updateSinkBody,
  columns: ['id', 'name', 'kind', 'state', 'lag_records', 'lag_seconds', 'error'],
  flags: {
    url: { hint: 'URL' },
    filter: { hint: 'CEL' },
    'credentials.token': { name: 'token' },
    'credentials.username': { name: 'username' },
    'credentials.password': { name: 'password' },
    'credentials.access_key_id': { name: 'access-key-id' },
    'credentials.secret_access_key': { name: 'secret-access-key' },
    'credentials.client_certificate': { name: 'client-certificate' },
    'credentials.client_key': { name: 'client-key' },
    'credentials.headers': { name: 'header' },
  },
})
