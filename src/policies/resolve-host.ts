import { lookup } from 'node:dns/promises'

/** All addresses of a host name, as this machine's resolver gives them. Rejects where there are none. */
export const resolveHost = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address)
