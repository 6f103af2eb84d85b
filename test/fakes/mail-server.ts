/** A mail server (smtp-server, of the authors of nodemailer) that keeps what it gets. */
import { SMTPServer } from 'smtp-server'
import { certificate, key } from '../../src/lib/testing/certificate.ts'

export interface MailServer {
  port: number
  mails: { from: string; to: string[]; user: string | null; encrypted: boolean; text: string }[]
  /** The status that it answers to a message instead of taking it. */
  refuseWith: number | null
  stop(): Promise<void>
}

export async function mailServer({ password }: { password?: string } = {}): Promise<MailServer> {
  const server = new SMTPServer({
    ...{ key, cert: certificate, authOptional: password === undefined, logger: false },
    onAuth({ username, password: given }, _session, done) {
      if (given === password) return done(null, { user: username ?? '' })
      done(Object.assign(new Error('Invalid user or password'), { responseCode: 535 }))
    },
    onData(stream, { envelope, user, secure }, done) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        if (made.refuseWith !== null) {
          return done(Object.assign(new Error('No'), { responseCode: made.refuseWith }))
        }
        made.mails.push({
          from: envelope.mailFrom === false ? '' : envelope.mailFrom.address,
          to: envelope.rcptTo.map(({ address }) => address),
          user: typeof user === 'string' ? user : null,
          encrypted: secure,
          text: Buffer.concat(parts).toString(),
        })
        done()
      })
    },
  })
  server.on('error', () => undefined)
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', () => listening()))
  const address = server.server.address()
  const made: MailServer = {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    mails: [],
    refuseWith: null,
    stop: () => new Promise((stopped) => server.close(() => stopped())),
  }
  return made
}
