// Codes bytes with the model of csrc/byte_model.h.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <memory>

#include "bindings/arrays.h"
#include "bit_coder.h"
#include "byte_model.h"

namespace unspool {
namespace {

template <class T> using Table = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> std::vector<T> copied(const Table<T>& table, size_t size, const char* name) {
  require(table.size() == size, std::string(name) + " has " + std::to_string(table.size()) + " values; expected " + std::to_string(size));
  return {table.data(), table.data() + size};
}

constexpr int MOST_BITS = 23;

ByteModel* new_model(int bits, const Table<float>& stretch, const Table<uint16_t>& squash, const Table<uint32_t>& powers) {
  require(bits >= 2 && bits <= MOST_BITS, "bits must be from 2 to " + std::to_string(MOST_BITS) + "; got " + std::to_string(bits));
  for (size_t i = 0; i < stretch.size(); i++)
    require(stretch.data()[i] >= -16.0f && stretch.data()[i] <= 16.0f, "stretch must hold numbers from -16 to 16");
  ByteTables tables{copied(stretch, 4096, "stretch"), copied(squash, 8192, "squash"), copied(powers, 2048, "powers")};
  try {
    return new ByteModel(bits, std::move(tables));
  } catch (const std::bad_alloc&) {
    throw Refused("not enough memory for " + std::to_string(((uint64_t)1 << bits) * sizeof(Bucket)) + " bytes of counts");
  }
}

// Logits of every byte, n x 256, all finite; nullptr without a network.
const float* checked_logits(const std::optional<Floats>& logits, int64_t n) {
  const float* o = checked(logits, "logits", {n, 256});
  for (int64_t i = 0; o && i < 256 * n; i++) require(o[i] - o[i] == 0.0f, "the logits are not finite numbers");
  return o;
}

// A call changes the model without the GIL: calls on one object exclude each other. After one that failed, the object stays in use.
class InUse {
 public:
  explicit InUse(bool& flag) : flag(flag) {
    require(!flag, "this coder is in use by another thread, has failed or is finished; make a new one");
    flag = true;
  }
  void release() { flag = false; }

 private:
  bool& flag;
};

constexpr size_t MOST_BYTES = ((size_t)1 << 32) - 1;

struct ByteEncoder {
  std::unique_ptr<ByteModel> model;
  BitEncoder coder;
  size_t coded = 0;
  bool in_use = false;

  ByteEncoder(int bits, Table<float> stretch, Table<uint16_t> squash, Table<uint32_t> powers)
      : model(new_model(bits, stretch, squash, powers)) {}

  void encode(nb::bytes data, std::optional<Floats> logits) {
    const float* o = checked_logits(logits, (int64_t)data.size());
    const uint8_t* bytes = (const uint8_t*)data.c_str();
    const size_t n = data.size();
    require(n <= MOST_BYTES - coded, "at most 2^32 - 1 bytes can be coded");
    InUse use(in_use);
    {
      GilReleased released;
      for (size_t i = 0; i < n; i++) {
        model->set_network(o ? o + 256 * i : nullptr);
        for (int k = 7; k >= 0; k--) {
          const int y = bytes[i] >> k & 1;
          coder.put(y, model->predict());
          model->update(y);
        }
      }
    }
    coded += n;
    use.release();
  }
  size_t size() {
    InUse use(in_use);
    const size_t bytes = coder.out.size();
    use.release();
    return bytes;
  }
  nb::bytes finish() {
    InUse use(in_use);  // for good
    coder.finish();
    return nb::bytes((const char*)coder.out.data(), coder.out.size());
  }
};

struct ByteDecoder {
  std::unique_ptr<ByteModel> model;
  BitDecoder coder;
  size_t decoded = 0;
  bool in_use = false;

  ByteDecoder(int bits, Table<float> stretch, Table<uint16_t> squash, Table<uint32_t> powers, nb::bytes payload)
      : model(new_model(bits, stretch, squash, powers)),
        coder({(const uint8_t*)payload.c_str(), (const uint8_t*)payload.c_str() + payload.size()}) {}

  nb::bytes decode(size_t n, std::optional<Floats> logits) {
    require(n == 1 || !logits, "with logits, bytes are decoded one by one; got n = " + std::to_string(n));
    const float* o = checked_logits(logits, 1);
    require(n <= MOST_BYTES - decoded, "at most 2^32 - 1 bytes can be decoded; got n = " + std::to_string(n));
    std::vector<uint8_t> found(n);
    InUse use(in_use);
    {
      GilReleased released;
      for (auto& byte : found) {
        model->set_network(o);
        for (int k = 0; k < 8; k++) {
          const int y = coder.take(model->predict());
          model->update(y);
          byte = (uint8_t)(byte << 1 | y);
        }
      }
    }
    decoded += n;
    use.release();
    return nb::bytes((const char*)found.data(), n);
  }
};

}  // namespace

void bind_byte_coder(nb::module_& m) {
  nb::class_<ByteEncoder>(m, "ByteEncoder")
      .def(nb::init<int, Table<float>, Table<uint16_t>, Table<uint32_t>>(), "bits"_a, "stretch"_a.noconvert(), "squash"_a.noconvert(),
           "powers"_a.noconvert())
      .def("encode", &ByteEncoder::encode, "data"_a, "logits"_a.noconvert().none() = nb::none())
      .def_prop_ro("size", &ByteEncoder::size)
      .def("finish", &ByteEncoder::finish);
  nb::class_<ByteDecoder>(m, "ByteDecoder")
      .def(nb::init<int, Table<float>, Table<uint16_t>, Table<uint32_t>, nb::bytes>(), "bits"_a, "stretch"_a.noconvert(), "squash"_a.noconvert(),
           "powers"_a.noconvert(), "payload"_a)
      .def("decode", &ByteDecoder::decode, "n"_a, "logits"_a.noconvert().none() = nb::none());
}

}  // namespace unspool
