import { createContext, useContext, useSyncExternalStore } from 'react'
import { type Listener, useGatewayState } from '../../api/state.ts'
import { type ChatState, type ChatStore, createChatStore } from './chat-store.ts'
import type { Models } from './model/list-models.ts'
import { useModels } from './model/use-models.ts'

/** Conversations outlive the page: requests go on while another one is open. A reload forgets them. */
const store = createChatStore({ now: () => performance.now() })

/** What the parts of the page share. */
export type Chat = {
  readonly store: ChatStore
  readonly state: ChatState
  /** Listeners that serve models. */
  readonly listeners: readonly Listener[]
  readonly listener: Listener | undefined
  readonly models: Models | { readonly kind: 'loading' }
}

const ChatContext = createContext<Chat | undefined>(undefined)

export const ChatProvider = ChatContext.Provider

export function useChat(): Chat {
  const chat = useContext(ChatContext)
  if (!chat) throw new Error('no chat context')
  return chat
}

/** The chat of this page; undefined until the listeners are known. */
export function useCreateChat(): { chat: Chat | undefined; error: unknown; retry(): void } {
  const { data, error, refetch } = useGatewayState()
  const state = useSyncExternalStore(store.subscribe, store.read)
  const listeners = (data?.listeners ?? []).filter(({ serves }) => serves.includes('llm'))
  const listener = listeners.find(({ gateway }) => gateway === state.gateway) ?? listeners[0]
  const models = useModels(listener?.gateway, state.basePath)
  const chat = data && { store, state, listeners, listener, models }
  return { chat, error: data ? undefined : error, retry: () => void refetch() }
}
