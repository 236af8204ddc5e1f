import type { Socket } from 'node:net'

/** TCP keep-alive probes of an idle connection. */
export type KeepAliveProbes =
  | { readonly kind: 'off' }
  | {
      readonly kind: 'on'
      /** Idle time before the first probe. */
      readonly delayMs: number
      /** Time between probes. Default: that of the system. */
      readonly intervalMs?: number | undefined
      /** Unanswered probes before the connection is closed. Default: that of the system. */
      readonly count?: number | undefined
    }

/** Idle time before the first probe, by default. */
export const defaultProbes: KeepAliveProbes = { kind: 'on', delayMs: 60_000 }

/** The method since Node 26; earlier versions ignore the last two arguments. */
type SetKeepAlive = (enable: boolean, delayMs: number, intervalMs?: number, count?: number) => void

/** Configures the keep-alive probes of a connection. */
export function setProbes(socket: Socket, probes: KeepAliveProbes): void {
  if (probes.kind === 'off') {
    socket.setKeepAlive(false)
    return
  }
  const set: SetKeepAlive = socket.setKeepAlive
  set.call(socket, true, probes.delayMs, probes.intervalMs, probes.count)
}
