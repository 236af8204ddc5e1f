import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from '@codemirror/language'
import { type Diagnostic, forceLinting, linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { highlightSelectionMatches, search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, type Extension } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from '@codemirror/view'
import { type RefObject, useEffect, useRef } from 'react'
import { cspNonce } from '../app/csp-nonce.ts'
import { classNames } from '../components/class-names.ts'
import { celLanguage } from './cel/cel-language.ts'
import type { CodeEditorProps, EditorMistake } from './code-editor.tsx'
import { editorTheme } from './editor-theme.ts'

const checkDelayMs = 300

/** CodeMirror with the look of the console. Tab indents in tall editors; Escape, then Tab leaves them. */
export default function CodeMirror(props: CodeEditorProps) {
  const { value, size = 'line', invalid, readOnly = false, onChange, mistakes } = props
  const holder = useRef<HTMLDivElement>(null)
  const editor = useRef<EditorView>(undefined)
  const latest = useRef(props)
  latest.current = props
  const fixed = readOnly || onChange === undefined

  // biome-ignore lint/correctness/useExhaustiveDependencies: the editor is created once; later values are dispatched
  useEffect(() => {
    if (holder.current === null) return
    const view = new EditorView({
      parent: holder.current,
      state: EditorState.create({ doc: latest.current.value, extensions: extensionsOf(latest) }),
    })
    editor.current = view
    return () => {
      editor.current = undefined
      view.destroy()
    }
  }, [props.language])

  useEffect(() => {
    const view = editor.current
    if (view === undefined || view.state.doc.toString() === value) return
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value } })
  }, [value])

  // biome-ignore lint/correctness/useExhaustiveDependencies: the attributes that can change
  useEffect(() => {
    editor.current?.dispatch({
      effects: attributes.reconfigure(attributesOf(latest.current, fixed)),
    })
  }, [fixed, invalid, props.describedBy, props.label, props.id])

  useEffect(() => {
    if (mistakes !== undefined && editor.current) forceLinting(editor.current)
  }, [mistakes])

  return (
    <div
      ref={holder}
      className={classNames(
        'min-w-0 overflow-hidden rounded-md border bg-surface shadow-card focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent',
        invalid ? 'border-bad' : 'border-line-strong',
        fixed && 'bg-sunken',
        size === 'tall' && 'h-[32rem] max-h-[70dvh] resize-y [&_.cm-editor]:h-full',
        size === 'line' && '[&_.cm-scroller]:max-h-64',
      )}
    />
  )
}

const attributes = new Compartment()

function extensionsOf(latest: RefObject<CodeEditorProps>): Extension {
  const props = latest.current
  const { language, size = 'line', onChange, readOnly = false } = props
  const isTall = size === 'tall'
  return [
    EditorView.cspNonce.of(cspNonce()),
    editorTheme,
    languageOf(language),
    attributes.of(attributesOf(props, readOnly || onChange === undefined)),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    replaceLines,
    EditorView.updateListener.of(({ docChanged, state }) => {
      const text = docChanged ? state.doc.toString() : undefined
      if (text !== undefined && text !== latest.current.value) latest.current.onChange?.(text)
    }),
    EditorView.domEventHandlers({ blur: () => latest.current.onBlur?.() }),
    autocompletion({ override: [(context) => suggestions(context, latest.current)], icons: false }),
    linter(async (view) => [...(await diagnostics(view.state.doc.toString(), latest.current))], {
      delay: checkDelayMs,
    }),
    isTall ? tallExtensions : EditorView.lineWrapping,
    props.placeholder === undefined ? [] : placeholder(props.placeholder),
    keymap.of([
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...defaultKeymap,
      ...historyKeymap,
      ...lintKeymap,
      ...(isTall ? [...searchKeymap, ...foldKeymap, indentWithTab] : []),
    ]),
  ]
}

/**
 * Replaces a selection of several lines without the browser, which would merge the lines with style attributes
 * that the content security policy refuses.
 */
const replaceLines: Extension = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state, composing } = view
    const { from, to } = state.selection.main
    if (event.inputType !== 'insertText' || event.data === null || composing || state.readOnly) return false
    if (state.doc.lineAt(from).number === state.doc.lineAt(to).number) return false
    event.preventDefault()
    view.dispatch(state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

const tallExtensions: Extension = [
  lineNumbers(),
  foldGutter(),
  lintGutter(),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  highlightSelectionMatches(),
  indentOnInput(),
  search({ top: true }),
  EditorState.tabSize.of(2),
]

function languageOf(language: CodeEditorProps['language']): Extension {
  switch (language) {
    case 'yaml':
      return yaml()
    case 'json':
      return json()
    case 'cel':
      return celLanguage
    case 'text':
      return []
  }
}

function attributesOf({ label, id, describedBy, invalid, size }: CodeEditorProps, fixed: boolean): Extension {
  const hint = size === 'tall' && !fixed ? '. Escape, then Tab leaves the editor' : ''
  return [
    EditorState.readOnly.of(fixed),
    EditorView.contentAttributes.of({
      'aria-label': `${label}${hint}`,
      ...(id === undefined ? {} : { id }),
      ...(describedBy === undefined ? {} : { 'aria-describedby': describedBy }),
      ...(invalid ? { 'aria-invalid': 'true' } : {}),
      ...(fixed ? { 'aria-readonly': 'true' } : {}),
      // The scrollable area is reachable by keyboard, also where its text cannot be changed.
      tabindex: '0',
      spellcheck: 'false',
    }),
  ]
}

function suggestions(context: CompletionContext, { complete }: CodeEditorProps): CompletionResult | null {
  const found = complete?.(context.state.doc.toString(), context.pos)
  if (found === undefined || found.items.length === 0) return null
  if (!context.explicit && found.from === context.pos && !/[\w.]$|: $/.test(textBefore(context))) return null
  return {
    from: found.from,
    validFor: /^[\w$-]*$/,
    options: found.items.map(({ label, detail, info, insert, kind = 'property' }) => ({
      label,
      type: kind,
      ...(detail === undefined ? {} : { detail }),
      ...(info === undefined ? {} : { info }),
      ...(insert === undefined ? {} : { apply: insert }),
    })),
  }
}

function textBefore({ state, pos }: CompletionContext): string {
  return state.doc.lineAt(pos).text.slice(0, pos - state.doc.lineAt(pos).from)
}

async function diagnostics(text: string, props: CodeEditorProps): Promise<readonly Diagnostic[]> {
  const found: EditorMistake[] = [...(props.mistakes ?? [])]
  try {
    found.push(...((await props.check?.(text)) ?? []))
  } catch {
    // A check that fails, such as one without a connection, finds nothing; the save checks again.
  }
  const end = text.length
  return found.map(({ from, to, message, severity = 'error' }) => {
    const start = Math.min(Math.max(0, from), end)
    return { from: start, to: Math.min(Math.max(start, to), end), message, severity }
  })
}
