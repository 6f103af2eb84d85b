/** What of a sink no schema can say: the address of each kind, the parts that belong to it, its credentials. */
import { Failure } from '../failure.ts'
import { requireFilter } from './formats/filter.ts'
import { sinkKindOf } from './kinds/index.ts'
import { brokersOf } from './kinds/kafka.ts'
import type { SinkConfig, SinkCredentials, SinkFormat, SinkKindName } from './sink-resource.ts'

interface Checked {
  kind: SinkKindName
  url: string
  format: SinkFormat
  filter: string | null
  config: SinkConfig
  credentials: SinkCredentials
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Refuses what its kind cannot send, and addresses at which the record or a credential would travel unencrypted.
 * `dimensions`: those of attribution that a filter may name; null: not known.
 */
export function checkSink(
  { kind, url, format, filter, config, credentials }: Checked,
  plainHttp: 'loopback' | 'anywhere',
  dimensions: readonly string[] | null,
): void {
  const { formats, own, needs, schemes } = sinkKindOf(kind)
  if (!formats.includes(format)) {
    throw wrong('format', `A sink of the kind ${kind} takes ${formats.join(', ')}`)
  }
  const foreign = Object.keys(config).find((part) => part !== own && part !== 'ca_certificate')
  if (foreign !== undefined) throw wrong(foreign, `This belongs to another kind than ${kind}`)
  if ((own === 's3' || own === 'kafka') && config[own] === undefined) {
    throw wrong(own, `A sink of the kind ${kind} needs ${own === 's3' ? 's3.bucket' : 'kafka.topic'}`)
  }
  const missing = needs.find((name) => credentials[name] === undefined)
  if (missing !== undefined) throw wrong(`credentials.${missing}`, `A sink of the kind ${kind} needs this`)
  if (filter !== null) requireFilter(filter, dimensions)
  const { protocol, hosts } = kind === 'kafka' ? kafkaAddress(url) : address(url)
  if (protocol !== `${schemes.tls}:` && protocol !== `${schemes.plain}:`) {
    throw wrong('url', `Write an address that begins with ${schemes.tls}://`)
  }
  const isPlain = protocol === `${schemes.plain}:`
  if (isPlain && plainHttp === 'loopback' && !hosts.every((host) => loopback.test(host))) {
    throw wrong('url', `Only what is on this host may be reached without TLS: write ${schemes.tls}://`)
  }
}

interface Address {
  protocol: string
  hosts: readonly string[]
}

function address(text: string): Address {
  const url = URL.parse(text)
  if (url === null || url.hostname === '') throw wrong('url', 'Write an address with its scheme: https://host/path')
  if (url.username !== '' || url.password !== '') throw wrong('url', 'Leave user and password out: use credentials')
  if (/[?#]/.test(text)) throw wrong('url', 'Leave query and fragment out')
  return { protocol: url.protocol, hosts: [url.hostname] }
}

function kafkaAddress(text: string): Address {
  const brokers = brokersOf(text)
  if (brokers === null)
    throw wrong('url', 'Write brokers with their ports: kafkas://one.example.com:9093,two.example.com:9093')
  return { protocol: text.slice(0, text.indexOf('//')), hosts: brokers.map((broker) => broker.replace(/:\d+$/, '')) }
}

const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })
