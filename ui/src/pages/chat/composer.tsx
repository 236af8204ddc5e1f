import { ArrowUp, ImagePlus, Square, X } from 'lucide-react'
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useId, useRef, useState } from 'react'
import { Button } from '../../components/action/button.tsx'
import { IconButton } from '../../components/action/icon-button.tsx'
import { formatBytes } from '../../format/number.ts'
import { useChat } from './chat-context.ts'
import type { Image } from './model/conversation.ts'
import { imageTypes, readImages } from './model/images.ts'

/** Prompt for all models, or for the one of `panelId`. */
export function Composer({ panelId }: { panelId?: string }) {
  const { store, state, listener } = useChat()
  const [text, setText] = useState('')
  const { images, problems, add, remove, clear } = useImages()
  const hintId = useId()
  const input = useRef<HTMLTextAreaElement>(null)
  const panels = state.panels.filter(({ id }) => panelId === undefined || id === panelId)
  const running = panels.some(({ id }) => store.isRunning(id))
  const mayStart = panels.some(({ id, model }) => model !== '' && !store.isRunning(id))
  const ready = mayStart && (text.trim() !== '' || images.length > 0)
  const submit = () => {
    if (!ready || !listener) return
    store.prompt({ text: text.trim(), images }, listener.gateway, panelId)
    setText('')
    clear()
    input.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method composes a character, Enter confirms it.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <form
      aria-label={panelId === undefined ? 'Prompt' : `Prompt for ${panels[0]?.model}`}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event: DragEvent) => {
        event.preventDefault()
        void add([...event.dataTransfer.files])
      }}
      className="rounded-xl border border-line-strong bg-surface p-2 shadow-card focus-within:border-accent"
    >
      <Attachments images={images} problems={problems} onRemove={remove} />
      <textarea
        ref={input}
        aria-label="Message"
        aria-describedby={hintId}
        placeholder={
          panels.length > 1 ? `Message to ${panels.length} models` : 'Message. Paste or drop images here.'
        }
        rows={1}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        onPaste={(event: ClipboardEvent) => {
          if (event.clipboardData.files.length > 0) void add([...event.clipboardData.files])
        }}
        className="field-sizing-content block max-h-40 min-h-9 w-full resize-none bg-transparent px-2 py-1.5 text-sm outline-none"
      />
      <div className="mt-1 flex items-center gap-2">
        <AttachButton onFiles={add} />
        <span id={hintId} className="flex-1 truncate text-2xs text-ink-faint">
          Enter sends, Shift Enter adds a line
        </span>
        {running && (
          <Button icon={Square} onClick={() => store.stop(panelId)}>
            Stop
          </Button>
        )}
        <Button type="submit" tone="primary" icon={ArrowUp} disabled={!ready}>
          Send
        </Button>
      </div>
    </form>
  )
}

function AttachButton({ onFiles }: { onFiles(files: readonly File[]): void }) {
  const picker = useRef<HTMLInputElement>(null)
  return (
    <>
      <input
        ref={picker}
        type="file"
        accept={imageTypes.join(',')}
        multiple
        aria-label="Images"
        tabIndex={-1}
        className="hidden"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])])
          event.target.value = ''
        }}
      />
      <IconButton icon={ImagePlus} label="Attach images" onClick={() => picker.current?.click()} />
    </>
  )
}

function Attachments({
  images,
  problems,
  onRemove,
}: {
  images: readonly Image[]
  problems: readonly string[]
  onRemove(index: number): void
}) {
  return (
    <>
      {images.length > 0 && (
        <ul aria-label="Attached images" className="flex flex-wrap gap-2 px-1 pt-1 pb-2">
          {images.map((image, index) => (
            <li key={index} className="flex items-center gap-2 rounded-md border border-line p-1 pr-2">
              <img src={image.dataUrl} alt="" className="size-9 rounded object-cover" />
              <span className="max-w-32 truncate text-xs">{image.name}</span>
              <span className="text-2xs text-ink-faint">{formatBytes(image.bytes)}</span>
              <button
                type="button"
                aria-label={`Remove ${image.name}`}
                onClick={() => onRemove(index)}
                className="rounded p-1 text-ink-faint hover:text-ink"
              >
                <X className="size-3.5" aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div role="alert">
        {problems.map((problem) => (
          <p key={problem} className="px-2 pb-1 text-xs text-bad">
            {problem}
          </p>
        ))}
      </div>
    </>
  )
}

function useImages() {
  const [images, setImages] = useState<readonly Image[]>([])
  const [problems, setProblems] = useState<readonly string[]>([])
  return {
    images,
    problems,
    async add(files: readonly File[]) {
      const read = await readImages(files, images.length)
      setImages((before) => [...before, ...read.images])
      setProblems(read.problems)
    },
    remove: (index: number) => setImages((before) => before.toSpliced(index, 1)),
    clear() {
      setImages([])
      setProblems([])
    },
  }
}
