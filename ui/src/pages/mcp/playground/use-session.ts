import { useSyncExternalStore } from 'react'
import { createMcpSession, type McpSession, type SessionState } from './session.ts'

/** The session outlives the page, so that one can look something up elsewhere. A reload ends it. */
const session = createMcpSession({ now: Date.now })

export function useMcpSession(): { readonly session: McpSession; readonly state: SessionState } {
  return { session, state: useSyncExternalStore(session.subscribe, session.read) }
}
