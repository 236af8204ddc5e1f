import { useQuery } from '@tanstack/react-query'
import { createContext, useContext, useSyncExternalStore } from 'react'
import { useEnteredKey } from '../../api/entered-key.ts'
import { type Listener, useGatewayState } from '../../api/state.ts'
import { type ChatState, type ChatStore, createChatStore } from './chat-store.ts'
import { listModels, type Models } from './model/list-models.ts'

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

function useModels(gateway: string | undefined, basePath: string): Chat['models'] {
  const [key] = useEnteredKey()
  const { data, error } = useQuery({
    queryKey: ['playground-models', gateway, basePath, key],
    queryFn: ({ signal }) => listModels(gateway ?? '', basePath, key, signal),
    enabled: gateway !== undefined,
    staleTime: 30_000,
    // The key is a part of the query's name: it must not stay in the cache.
    gcTime: 0,
  })
  if (error) return { kind: 'refused', status: 0, message: error.message }
  return data ?? { kind: 'loading' }
}
