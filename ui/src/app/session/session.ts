import { useSyncExternalStore } from 'react'
import type { UnauthorizedCall } from '../../api/client.ts'

/**
 * Session of the browser: `active` until a call is refused, `ended` while the user is asked to log in,
 * `postponed` after the user has closed the dialog.
 */
export type SessionState = 'active' | 'ended' | 'postponed'

/** Page that a login window returns to, below the base of the console. */
export const renewedPath = '/session/renewed'
const channelName = 'tollgate-session'

type Waiting = (isRepeated: boolean) => void

let state: SessionState = 'active'
let waiting: Waiting[] = []
const listeners = new Set<() => void>()

/** Waits for a login; resolves with whether to repeat the call. */
export function waitForLogin({ isRead, signal }: UnauthorizedCall): Promise<boolean> {
  // Reads in the background must not open a dialog that the user has closed.
  if (state === 'postponed' && isRead) return Promise.resolve(false)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  waiting.push(resolve)
  signal?.addEventListener('abort', () => resolve(false), { once: true })
  publish('ended')
  return promise
}

/** Ends the wait after a login. Calls of another user are not repeated. */
export function resumeCalls(isSameUser: boolean): void {
  settle(isSameUser)
  publish('active')
}

/** Closes the dialog without a login. Input remains, and calls fail. */
export function postponeLogin(): void {
  settle(false)
  publish('postponed')
}

/** Opens the dialog again. */
export function askForLogin(): void {
  publish('ended')
}

export function useSessionState(): SessionState {
  return useSyncExternalStore(subscribe, () => state)
}

/** Reports a login to the other windows of the console. */
export function announceLogin(): void {
  const channel = new BroadcastChannel(channelName)
  channel.postMessage('renewed')
  channel.close()
}

/** Calls `onLogin` after a login in another window, or when this window is used again. */
export function onPossibleLogin(onLogin: () => void): () => void {
  const channel = new BroadcastChannel(channelName)
  channel.onmessage = onLogin
  window.addEventListener('focus', onLogin)
  return () => {
    channel.close()
    window.removeEventListener('focus', onLogin)
  }
}

function settle(isRepeated: boolean): void {
  const settled = waiting
  waiting = []
  for (const resolve of settled) resolve(isRepeated)
}

function publish(next: SessionState): void {
  state = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
