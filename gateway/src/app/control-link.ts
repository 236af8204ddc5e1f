import type { ApiHandler } from '../admin/admin.ts'

/** Parts of the control plane that listeners and compiled `ui` routes call. */
export type Control = {
  api: ApiHandler
  /** Reason why the configuration is incomplete; no traffic is served until it is undefined. */
  pending(): string | undefined
}

/** A `Control` for the data plane, which exists before the control plane. */
export type ControlLink = Control & { connect(control: Control): void }

/** Creates a link that responds with 503 until it is connected. */
export function createControlLink(): ControlLink {
  let state: { kind: 'starting' } | { kind: 'connected'; control: Control } = { kind: 'starting' }
  return {
    api: async (request) =>
      state.kind === 'connected' ? state.control.api(request) : { status: 503, headers: {}, body: undefined },
    pending: () => (state.kind === 'connected' ? state.control.pending() : 'listeners'),
    connect(control) {
      state = { kind: 'connected', control }
    },
  }
}
