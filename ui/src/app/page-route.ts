import type { ComponentType } from 'react'

/** A page and its address below `/ui`, as a wouter pattern: `/llm/models/:id`. Its code is loaded when opened. */
export type PageRoute = {
  readonly path: string
  /** Loads a module whose default export is the page. It reads parameters with wouter's `useParams`. */
  load(): Promise<{ readonly default: ComponentType }>
}
