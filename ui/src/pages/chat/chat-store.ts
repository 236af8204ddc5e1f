import { enteredKey } from '../../api/entered-key.ts'
import {
  type Answer,
  type Image,
  initialSettings,
  openCalls,
  requestOf,
  type Settings,
  type Turn,
} from './model/conversation.ts'
import { send, type Update } from './model/send.ts'

export type Panel = { readonly id: string; readonly model: string; readonly turns: readonly Turn[] }

export type ChatState = {
  readonly panels: readonly Panel[]
  readonly settings: Settings
  /** Gateway of the requests; undefined: the first that serves models. */
  readonly gateway: string | undefined
  readonly basePath: string
  /** Whether each model has a prompt of its own. */
  readonly separate: boolean
}

export type Prompt = { readonly text: string; readonly images: readonly Image[] }

export type ChatStore = ReturnType<typeof createChatStore>

export const maxPanels = 4

/** Interval of notifications while responses stream, in milliseconds. */
const notifyMs = 40

const initialState: ChatState = {
  panels: [{ id: 'panel-1', model: '', turns: [] }],
  settings: initialSettings,
  gateway: undefined,
  basePath: '/v1',
  separate: false,
}

/** Creates the conversations of the playground. Requests continue while another page is open. */
export function createChatStore({ now }: { now(): number }) {
  const { read, subscribe, update, updatePanel, nextId } = createState()
  const running = new Map<string, AbortController>()

  const ask = (panelId: string, gateway: string) => {
    const panel = read().panels.find(({ id }) => id === panelId)
    if (!panel || panel.model === '' || running.has(panelId)) return
    const { settings, basePath } = read()
    const request = requestOf(panel.model, panel.turns, settings)
    const id = nextId()
    const abort = new AbortController()
    running.set(panelId, abort)
    const onUpdate = ({ progress, run }: Update) => {
      const { text, reasoning, toolCalls } = progress
      const answer: Answer = { kind: 'answer', id, model: panel.model, text, reasoning, toolCalls, run }
      updatePanel(panelId, ({ turns }) => ({
        turns: [...turns.filter((turn) => turn.id !== id), answer],
      }))
    }
    const target = { gateway, basePath, key: enteredKey() }
    void send(target, request, { signal: abort.signal, onUpdate, now }).finally(() => {
      running.delete(panelId)
      update({})
    })
  }

  return {
    read,
    subscribe,
    isRunning: (panelId: string) => running.has(panelId),
    setSettings: (settings: Partial<Settings>) => update({ settings: { ...read().settings, ...settings } }),
    setConnection: (connection: Partial<Pick<ChatState, 'gateway' | 'basePath' | 'separate'>>) =>
      update(connection),
    setModel: (panelId: string, model: string) => updatePanel(panelId, () => ({ model })),
    addPanel(model: string) {
      const { panels } = read()
      if (panels.length < maxPanels) update({ panels: [...panels, { id: nextId(), model, turns: [] }] })
    },
    removePanel(panelId: string) {
      running.get(panelId)?.abort()
      update({ panels: read().panels.filter(({ id }) => id !== panelId) })
    },
    /** Sends a prompt to one panel, or to all. */
    prompt({ text, images }: Prompt, gateway: string, panelId?: string) {
      for (const { id, model } of read().panels) {
        if ((panelId !== undefined && id !== panelId) || model === '' || running.has(id)) continue
        const turn: Turn = { kind: 'user', id: nextId(), text, images }
        updatePanel(id, ({ turns }) => ({ turns: [...turns, turn] }))
        ask(id, gateway)
      }
    },
    /** Adds the result of a tool call; after the last one the model continues. */
    answerCall(panelId: string, callId: string, text: string, gateway: string) {
      const turn: Turn = { kind: 'result', id: nextId(), callId, text }
      updatePanel(panelId, ({ turns }) => ({ turns: [...turns, turn] }))
      const panel = read().panels.find(({ id }) => id === panelId)
      if (panel && openCalls(panel.turns).length === 0) ask(panelId, gateway)
    },
    /** Requests the last answer again. */
    retry(panelId: string, gateway: string) {
      if (running.has(panelId)) return
      updatePanel(panelId, ({ turns }) => ({
        turns: turns.at(-1)?.kind === 'answer' ? turns.slice(0, -1) : turns,
      }))
      ask(panelId, gateway)
    },
    stop(panelId?: string) {
      for (const [id, abort] of running) if (panelId === undefined || id === panelId) abort.abort()
    },
    clear() {
      for (const abort of running.values()) abort.abort()
      // A request that ends later must not write into the new conversation.
      update({ panels: read().panels.map(({ model }) => ({ id: nextId(), model, turns: [] })) })
    },
  }
}

function createState() {
  let state = initialState
  let lastId = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const listeners = new Set<() => void>()
  const notify = () => {
    timer = undefined
    for (const listener of listeners) listener()
  }
  const update = (change: Partial<ChatState>) => {
    state = { ...state, ...change }
    clearTimeout(timer)
    notify()
  }
  return {
    read: () => state,
    subscribe(listener: () => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    update,
    updatePanel(panelId: string, change: (panel: Panel) => Partial<Panel>) {
      const panels = state.panels.map((panel) =>
        panel.id === panelId ? { ...panel, ...change(panel) } : panel,
      )
      state = { ...state, panels }
      // Hundreds of chunks a second would render as often.
      timer ??= setTimeout(notify, notifyMs)
    },
    nextId(): string {
      lastId += 1
      return `turn-${lastId}`
    },
  }
}
