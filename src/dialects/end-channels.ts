/** Ends the channels of a stream that `belongs` names; gives those that had not ended, each once. */
export function endChannels<Channel extends { ended: boolean }>(
  channels: ReadonlyMap<string, Channel>,
  belongs: (channel: Channel, name: string) => boolean,
): string[] {
  const ended: string[] = []
  for (const [name, channel] of channels) {
    if (channel.ended || !belongs(channel, name)) continue
    channel.ended = true
    ended.push(name)
  }
  return ended
}
