import { useQuery } from '@tanstack/react-query'
import { createContext, useContext, useSyncExternalStore } from 'react'
import { useEnteredKey } from '../../api/entered-key.ts'
import { forward } from '../../api/forward.ts'
import { type Listener, useGatewayState } from '../../api/state.ts'
import { type ChatState, type ChatStore, createChatStore } from './chat-store.ts'
import { errorOf } from './model/completion.ts'
import { credential } from './model/send.ts'

/** Conversations outlive the page: requests go on while another one is open. A reload forgets them. */
const store = createChatStore({ now: () => performance.now() })

/** What the parts of the page share. */
export type Chat = {
  readonly store: ChatStore
  readonly state: ChatState
  /** Listeners that serve models. */
  readonly listeners: readonly Listener[]
  readonly listener: Listener | undefined
  readonly models: Models
}

/** Model names that the key may use; patterns are listed as they are. */
export type Models =
  | { readonly kind: 'loading' }
  | { readonly kind: 'listed'; readonly names: readonly string[] }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

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

function useModels(gateway: string | undefined, basePath: string): Models {
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

async function listModels(
  gateway: string,
  basePath: string,
  key: string,
  signal: AbortSignal,
): Promise<Models> {
  const response = await forward(gateway, `${basePath}/models`, { headers: credential(key), signal })
  const body: unknown = await response.json().catch(() => 'The response is not JSON.')
  if (!response.ok) return { kind: 'refused', status: response.status, message: errorOf(body).message }
  const { data } = body as { data?: readonly { id?: unknown }[] }
  const names = (data ?? []).flatMap(({ id }) => (typeof id === 'string' ? id : []))
  return { kind: 'listed', names }
}
