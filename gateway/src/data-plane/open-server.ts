import { messageOf } from '../lib/thrown.ts'
import { type ListeningServer, type ListenOptions, listen } from '../net/listener/listener.ts'

/** Opens a listening address. Rejects with a message that names the address and the cause. */
export type OpenServer = (options: ListenOptions) => Promise<ListeningServer>

export const openServer: OpenServer = async (options) => {
  try {
    return await listen(options)
  } catch (error) {
    throw describeListenError(error, options)
  }
}

/** Describes a failure to listen by its address and cause. */
export function describeListenError(error: unknown, { host, port }: { host: string; port: number }): Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  if (code === 'EADDRINUSE')
    return new Error(`cannot listen on ${address}: the port is in use by another process`)
  if (code === 'EACCES')
    return new Error(`cannot listen on ${address}: not allowed; ports below 1024 need privileges`)
  if (code === 'EADDRNOTAVAIL')
    return new Error(`cannot listen on ${address}: this machine has no such address`)
  return new Error(`cannot listen on ${address}: ${messageOf(error)}`, { cause: error })
}
