import { channelConfig, channelResource, channelSecrets } from '../../../../src/alerts/channel-resource.ts'
import { checkChannel } from '../../../../src/alerts/check-channel.ts'
import { kindOf } from '../kind.ts'

/** An address that is a secret has no host to compare: `--secrets` sends it anew. */
export const alertChannels = kindOf(channelResource, {
  standIns: { url: 'https://host.invalid/', signing_secret: `whsec_${'A'.repeat(32)}`, routing_key: 'A'.repeat(32) },
  secretsWith: ['smtp_host', 'smtp_port', 'smtp_tls', 'smtp_username'],
  check(body) {
    const { kind } = channelResource.create.parse(body)
    const fields = JSON.parse(JSON.stringify(body))
    checkChannel({ kind, config: channelConfig.parse(fields), secrets: channelSecrets.parse(fields) })
  },
})
